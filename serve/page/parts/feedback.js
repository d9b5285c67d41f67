// What a reader thinks of an answer.

import { errorText } from "../api.js";
import { el } from "../dom.js";
import { icon } from "./icons.js";

/** Return the thumbs, and the comment that follows them. */
export function feedbackBar(app, runId) {
  const field = el("input", { type: "text", maxlength: "4000", "aria-label": "Comment", placeholder: "What was good, or missing? (optional)" });
  const form = el("form", { class: "row comment", hidden: true, onsubmit: (event) => { event.preventDefault(); send(rating); } },
    field, el("button", { type: "submit" }, "Send"));
  const said = el("span", { class: "hint", role: "status" });
  let rating = "";
  const up = thumb("up", "Good answer");
  const down = thumb("down", "Bad answer");

  function thumb(value, label) {
    return el("button", { type: "button", class: "thumb", "aria-pressed": "false", "aria-label": label, title: label, onclick: () => { form.hidden = false; send(value); } }, icon(value));
  }

  async function send(value) {
    rating = value;
    up.setAttribute("aria-pressed", String(value === "up"));
    down.setAttribute("aria-pressed", String(value === "down"));
    try {
      await app.api.post("/api/v1/feedback", { run_id: runId, rating: value, comment: field.value });
      said.textContent = field.value ? "Thank you, your comment is kept." : "Thank you.";
    } catch (error) {
      said.textContent = errorText(error);
    }
  }

  return el("div", { class: "feedback row" }, up, down, form, said);
}
