// A question back to the person who asked.

import { el } from "../dom.js";

/** Return a question back that was answered, or left, before. */
export function clarified(clarification, reply) {
  return el("section", { class: "clarify" },
    el("p", { class: "clarify-question", dir: "auto" }, clarification.question),
    reply ? el("p", { class: "clarify-reply", dir: "auto" }, reply) : null);
}

/** Return the question with its options and a free field; `reply(text)` gets what is chosen. */
export function clarifyBox(clarification, reply) {
  const field = el("input", { type: "text", "aria-label": "Your reply", placeholder: "In your own words", dir: "auto", autocomplete: "off" });
  const box = el("section", { class: "clarify" });
  const answer = (text) => {
    if (text.trim()) reply(text.trim());
  };
  box.append(
    el("p", { class: "clarify-question", dir: "auto" }, clarification.question),
    el("div", { class: "row" }, (clarification.options || []).map((text) =>
      el("button", { type: "button", dir: "auto", onclick: () => answer(text) }, text))),
    el("form", { class: "row", onsubmit: (event) => { event.preventDefault(); answer(field.value); } },
      field, el("button", { type: "submit" }, "Reply")));
  return box;
}

/** Take no more replies to the questions back in `place`: one was given. */
export function closeClarifying(place) {
  for (const one of place.querySelectorAll(".clarify button, .clarify input")) one.disabled = true;
}
