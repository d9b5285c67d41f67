// The answer as it is read: paragraphs, parts, and marks that open their sources.

import { el } from "../dom.js";
import { marksOf, numbers } from "./cites.js";
import { openSource } from "./source.js";
import { placeText } from "./words.js";

/** Return the nodes of a finished answer: its text with marks, and the list of its sources. */
export function answerNodes(app, result, collection) {
  const cites = marksOf(result);
  const open = (index) => openSource(app, { collection, cites, index });
  cites.forEach((cite, index) => {
    cite.button = el("button", {
      type: "button", class: "mark", "aria-haspopup": "dialog",
      "aria-label": `Source ${cite.number}: ${cite.evidence ? cite.evidence.title || cite.evidence.source : ""}`,
      onclick: () => open(index),
    }, `[${cite.number}]`);
  });
  const text = el("div", { class: "answer whole", dir: "auto", lang: languageOf(result) }, paragraphs(result, cites));
  return [text, sources(result, cites, open)];
}

/** Return the language of the question, in which the answer is, when it is known. */
export function languageOf(result) {
  const first = ((result.plan || {}).questions || [])[0];
  return first && /^[a-z]{2,3}$/.test(first.language) && first.language !== "und" ? first.language : null;
}

function paragraphs(result, cites) {
  const asked = new Set(((result.plan || {}).questions || []).map((one) => one.text.trim()));
  for (const one of (result.plan || {}).asked || []) asked.add(one.text.trim());
  const many = ((result.plan || {}).questions || []).length > 1;
  const nodes = [];
  let at = 0;
  let fence = ""; // of the block of code that is open
  let code = [];
  for (const line of result.answer.split("\n")) {
    const mark = (/^\s*(`{3,}|~{3,})$/.exec(line) || [])[1];
    if (fence && mark === fence) {
      nodes.push(el("pre", { tabindex: "0" }, el("code", null, code.join("\n"))));
      [fence, code] = ["", []];
    } else if (fence) {
      code.push(line);
    } else if (mark) {
      fence = mark;
    } else if (line.trim()) {
      const isPart = many && asked.has(line.trim());
      const kind = isPart ? "h3" : "p";
      const inside = inline(result.answer, at + line.search(/\S|$/), at + line.length, cites);
      nodes.push(el(kind, { class: /^\d+\. /.test(line) ? "item" : isPart ? "part" : null, dir: "auto" }, inside));
    }
    at += line.length + 1;
  }
  return nodes;
}

function inline(text, from, to, cites) {
  const nodes = [];
  let at = from;
  for (const cite of cites) {
    if (cite.from < at || cite.to > to) continue;
    nodes.push(coded(text.slice(at, cite.from)), cite.button);
    at = cite.to;
  }
  nodes.push(coded(text.slice(at, to)));
  return nodes;
}

/** Show `names` between backticks as code. */
function coded(text) {
  return text.split(/`([^`\n]{1,80})`/).map((part, index) => (index % 2 ? el("code", null, part) : part));
}

function sources(result, cites, open) {
  if (!cites.length) return null;
  const number = numbers(result.claims);
  const rows = result.evidence.filter((item) => number.has(item.chunk_id))
    .sort((a, b) => number.get(a.chunk_id) - number.get(b.chunk_id));
  return el("ol", { class: "sources", "aria-label": "Sources" }, rows.map((item) => {
    const n = number.get(item.chunk_id);
    const first = cites.findIndex((cite) => cite.number === n);
    return el("li", null, el("button", { type: "button", class: "source", onclick: () => open(first) },
      el("span", { class: "source-number" }, n),
      el("span", null, el("span", { class: "source-title", dir: "auto" }, item.title || item.source),
        el("span", { class: "source-place", dir: "auto" }, placeText(item) || item.source))));
  }));
}
