// The way a run took through the graph.

import { el } from "../dom.js";
import { drawing } from "./drawing.js";

/** Return the drawing of a run's way, and the same as a list. */
export async function pathPanel(app, runId, trail) {
  const drawn = runId ? await drawing(app, `/api/v1/runs/${encodeURIComponent(runId)}/graph.svg`, "The graph, with the nodes this run visited") : null;
  const visits = new Map();
  for (const step of trail) visits.set(step.name, (visits.get(step.name) || 0) + 1);
  return [
    drawn,
    el("ol", { class: "way" }, [...visits].map(([name, times]) =>
      el("li", null, name, times > 1 ? el("span", { class: "soft" }, ` × ${times}`) : null))),
  ];
}
