// The steps of a run: a list while it runs, a table with filters afterwards.

import { el, fill, freshId } from "../dom.js";
import { msText } from "./words.js";

/** Return one line of the live list. */
export function stepLine(step) {
  return el("li", { class: `step step-${step.node}` },
    el("span", { class: "step-node" }, step.name),
    el("span", { class: "step-text", dir: "auto" }, step.text),
    el("span", { class: "step-ms" }, msText(step.ms)));
}

/** Return the table of all steps, to be filtered by kind and by sub-question. */
export function trailTable(trail) {
  const body = el("tbody");
  const kind = choice("Step", [...new Set(trail.map((step) => step.node))], (node) => trail.find((step) => step.node === node).name);
  const about = choice("Sub-question", [...new Set(trail.map((step) => step.question_id).filter(Boolean))].sort(), (id) => id);
  const draw = () => fill(body, trail.map((step, n) => [step, n])
    .filter(([step]) => (!kind.value || step.node === kind.value) && (!about.value || step.question_id === about.value))
    .map(([step, n]) => row(step, n)));
  kind.select.addEventListener("change", draw);
  about.select.addEventListener("change", draw);
  draw();
  return [
    el("div", { class: "row filters" }, kind.node, about.node),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Steps" },
      el("table", { class: "stack" }, el("thead", null, el("tr", null, ["#", "Step", "What it did", "For", "Time"].map((name) => el("th", { scope: "col" }, name)))), body)),
  ];
}

function choice(label, values, name) {
  const id = freshId("choice");
  const select = el("select", { id }, el("option", { value: "" }, "All"), values.map((value) => el("option", { value }, name(value))));
  return { select, node: el("span", { hidden: values.length < 2 }, el("label", { for: id }, label), " ", select), get value() { return select.value; } };
}

function row(step, n) {
  return el("tr", null,
    el("td", { class: "number", "data-name": "#" }, n + 1),
    el("td", { class: "kind", "data-name": "Step" }, step.name),
    el("td", { dir: "auto", "data-name": "What it did" }, step.text, step.degraded ? el("span", { class: "under" }, `Decided by the rules: ${step.degraded}`) : null, details(step)),
    el("td", { class: "number", "data-name": "For" }, step.question_id),
    el("td", { class: "number", "data-name": "Time" }, msText(step.ms)));
}

function details(step) {
  const rest = { arguments: step.arguments, auth_filter: step.auth_filter, stages: step.stages, calls: step.calls };
  const kept = Object.fromEntries(Object.entries(rest).filter(([, value]) => value && Object.keys(value).length));
  if (!Object.keys(kept).length) return null;
  const box = el("details", { ontoggle: () => { if (box.open && box.children.length === 1) box.append(el("pre", null, JSON.stringify(kept, null, 1))); } },
    el("summary", null, "details"));
  return box;
}
