// Where a question is written: the box, its options, and the button that sends or stops.

import { el, fill } from "../dom.js";
import { collectionOptions, filtersOf, whereField, whereLabel } from "./scope.js";

const PIPELINES = [["auto", "Auto"], ["agentic", "Agentic"], ["classic", "Classic"]];

/** Return {node, ask(text), running(bool), focus(), collection, where, pipeline, clarify}. */
export function makeComposer(collections, { send, stop }) {
  const box = el("textarea", {
    id: "question", rows: "1", dir: "auto", placeholder: "Ask your documents…", "aria-describedby": "question-hint",
    oninput: fit,
    onkeydown: (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      submit();
    },
  });
  const button = el("button", { type: "submit", class: "primary send" }, "Ask");
  const collection = el("select", { id: "ask-collection", onchange: label }, collectionOptions(collections));
  const where = whereField("ask-where");
  const pipeline = el("select", { id: "ask-pipeline", onchange: label }, PIPELINES.map(([value, name]) => el("option", { value }, name)));
  const clarify = el("input", { type: "checkbox", id: "ask-clarify", checked: true });
  const clarifyRow = el("label", { hidden: true }, clarify, " Ask me back when the question is unclear");
  const fixedNote = el("span", { class: "hint", hidden: true }, "A conversation keeps to its collection.");
  const summary = el("summary");
  const node = el("form", { class: "composer", onsubmit: (event) => { event.preventDefault(); submit(); } },
    el("div", { class: "composer-box" }, el("label", { class: "sr", for: "question" }, "Your question"), box, button),
    el("div", { class: "composer-foot" },
      el("details", { class: "options" }, summary,
        el("div", { class: "row options-row" }, el("label", null, "Collection ", collection), fixedNote, el("label", null, "Pipeline ", pipeline), whereLabel(where), clarifyRow)),
      el("span", { class: "hint", id: "question-hint" }, "Enter asks, Shift+Enter begins a new line")));
  let busy = false;

  function submit() {
    if (busy) stop();
    else if (box.value.trim()) {
      const text = box.value.trim();
      box.value = "";
      fit();
      send(text);
    }
  }

  function fit() {
    box.style.blockSize = "auto";
    box.style.blockSize = `${Math.min(box.scrollHeight + 2, 240)}px`;
  }

  function label() {
    fill(summary, "Options: ", el("strong", null, collection.value || "no collection"), ` · ${pipeline.value}`);
    if (collection.value) try { localStorage.setItem("carrel.collection", collection.value); } catch { /* not kept */ }
  }

  return {
    node,
    focus: () => box.focus(),
    /** Put a question into the box, to be changed before it is asked. */
    write(text) { box.value = text; fit(); box.focus(); },
    running(now) {
      busy = now;
      button.textContent = now ? "Stop" : "Ask";
      button.classList.toggle("primary", !now);
      button.classList.toggle("danger", now);
    },
    choose(name) {
      if ([...collection.options].some((one) => one.value === name)) collection.value = name;
      label();
    },
    /** A conversation keeps to its collection. */
    fix(fixed) {
      collection.disabled = fixed;
      fixedNote.hidden = !fixed;
    },
    offerClarifying(there) { clarifyRow.hidden = !there; },
    get collection() { return collection.value; },
    get pipeline() { return pipeline.value; },
    get where() { return filtersOf(where); },
    get clarify() { return clarify.checked && !clarifyRow.hidden; },
  };
}
