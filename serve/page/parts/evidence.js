// The evidence of a run as a table: marks, grades and scores.

import { bar, el } from "../dom.js";
import { numbers } from "./cites.js";
import { openSource } from "./source.js";
import { GRADES, placeText, toolName } from "./words.js";

const FIRST = 10;

/** Return the table; the cited passages have their marks. */
export function evidenceTable(app, result, collection) {
  if (!result.evidence.length) return el("p", { class: "soft" }, "Nothing was found.");
  const number = numbers(result.claims);
  const best = bestScores(result.evidence);
  const body = el("tbody");
  const draw = (items) => items.forEach((item) => body.append(row(app, item, number.get(item.chunk_id), best, collection)));
  draw(result.evidence.slice(0, FIRST));
  const rest = result.evidence.slice(FIRST);
  const more = rest.length && el("button", { type: "button", class: "quiet", onclick: () => { draw(rest); more.remove(); } }, `Show all ${result.evidence.length}`);
  const names = ["Mark", "Passage", "Grade", "Score", "Found by"];
  return [
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Evidence" },
      el("table", { class: "stack" }, el("thead", null, el("tr", null, names.map((name) => el("th", { scope: "col" }, name)))), body)),
    more,
  ];
}

function row(app, item, mark, best, collection) {
  const place = placeText(item);
  const open = (event) => openSource(app, { collection, index: 0, cites: [{ number: mark, spans: [], evidence: item, button: event.currentTarget, query: item.query }] });
  return el("tr", null,
    el("td", { "data-name": "Mark" }, mark ? `[${mark}]` : el("span", { class: "soft" }, "–")),
    el("td", { "data-name": "Passage" }, el("button", { type: "button", class: "link", dir: "auto", onclick: open }, item.title || item.source),
      place ? el("span", { class: "under", dir: "auto" }, place) : null),
    el("td", { "data-name": "Grade" }, gradeNode(item.grades)),
    el("td", { "data-name": "Score" }, bar(item.score / best.get(callOf(item)), item.score.toFixed(2), "score")),
    el("td", { "data-name": "Found by" }, toolName(item.tool), item.query ? el("span", { class: "under", dir: "auto" }, `“${item.query}”`) : null));
}

/** Return the best grade as dots and in words. */
export function gradeNode(grades) {
  const values = Object.values(grades || {});
  if (!values.length) return el("span", { class: "soft" }, "not graded");
  const grade = Math.max(...values);
  return el("span", { class: "grade" },
    el("span", { class: "dots", "aria-hidden": "true" }, [1, 2, 3].map((n) => el("i", { class: n <= grade ? "full" : null }))),
    el("span", null, `${grade} · ${GRADES[grade]}`));
}

/** Scores are comparable within one call only. */
function callOf(item) {
  return `${item.tool}\n${item.query}`;
}

function bestScores(evidence) {
  const best = new Map();
  for (const item of evidence) best.set(callOf(item), Math.max(best.get(callOf(item)) || 1e-9, item.score));
  return best;
}
