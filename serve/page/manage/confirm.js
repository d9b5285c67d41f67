// Asking before something is done that can not be undone.

import { el, freshId } from "../dom.js";

/** Ask in a dialog; resolve to whether the person wants it. */
export function confirmed({ heading, text, action }) {
  const before = document.activeElement;
  const id = freshId("confirm");
  let agreed = false;
  const dialog = el("dialog", { class: "confirm", "aria-labelledby": id, "aria-describedby": `${id}-text` },
    el("form", { method: "dialog", onsubmit: () => { agreed = true; } },
      el("h2", { id, dir: "auto" }, heading),
      el("p", { id: `${id}-text` }, text),
      el("div", { class: "row confirm-end" },
        el("button", { type: "button", autofocus: true, onclick: () => dialog.close() }, "Cancel"),
        el("button", { type: "submit", class: "danger" }, action))));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (before && before.isConnected) before.focus();
      resolve(agreed);
    });
  });
}
