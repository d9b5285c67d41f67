// How an answer came about: evidence, path, plan, steps, budget, and the raw object.

import { el } from "../dom.js";
import { budgetPanel } from "./budget.js";
import { evidenceTable } from "./evidence.js";
import { pathPanel } from "./path.js";
import { planPanel } from "./plan.js";
import { tabs } from "./tabs.js";
import { trailTable } from "./trail.js";

/** Return the disclosure; nothing in it is built before it is opened. */
export function howPanel(app, turn) {
  const { result, collection } = turn;
  const toTop = () => box.scrollIntoView({ block: "start" }); // at the foot the composer would cover it
  const box = el("details", { class: "how", ontoggle: () => {
    if (!box.open) return;
    if (box.children.length > 1) return toTop();
    box.append(tabs("How this was answered", [
      ["Evidence", () => evidenceTable(app, result, collection)],
      ["Path", () => pathPanel(app, result.run_id, turn.trail)],
      ["Plan", () => planPanel(app, result, collection)],
      ["Steps", () => trailTable(turn.trail)],
      ["Budget", () => budgetPanel(app, result)],
      ["JSON", () => raw(app, result)],
    ], toTop));
  } }, el("summary", null, "How this was answered"));
  return box;
}

function raw(app, result) {
  const text = JSON.stringify(result, null, 2);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      app.toast("Copied.");
    } catch {
      app.toast("The browser does not allow copying here.");
    }
  };
  return [el("button", { type: "button", onclick: copy }, "Copy"), el("pre", { class: "raw", tabindex: "0", role: "region", "aria-label": "JSON" }, text)];
}
