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
      const sign = /^\s*(#{1,6}\s+|[-*+]\s+)?/.exec(line);
      const isPart = (many && asked.has(line.trim())) || line.trim().startsWith("#");
      const isItem = /^\s*([-*+]|\d+\.) /.test(line);
      const inside = inline(result.answer, at + (sign[1] ? sign[0].length : line.search(/\S|$/)), at + line.length, cites);
      const last = nodes.at(-1);
      if (ROW.test(line) && last && last.rows) addRow(last, result.answer, at, line, cites);
      else if (ROW.test(line)) nodes.push(newTable(result.answer, at, line, cites));
      else nodes.push(el(isPart ? "h3" : "p", { class: isItem ? "item" : isPart ? "part" : null, dir: "auto" }, sign[1] && isItem ? "• " : null, inside));
    } else if (nodes.length) {
      nodes.at(-1).rows = null; // an empty line ends a table
    }
    at += line.length + 1;
  }
  return nodes;
}

// A row of a Markdown table, with the marks of its claim behind it.
const ROW = /^\s*\|.*\|\s*(\[\d+\]\s*)*$/;

function newTable(text, at, line, cites) {
  const body = el("tbody");
  const table = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, el("table", null, body));
  table.rows = body;
  addRow(table, text, at, line, cites);
  return table;
}

function addRow(table, text, at, line, cites) {
  if (/^[\s|:-]+$/.test(line)) { // what is above this line is the head
    for (const cell of table.rows.querySelectorAll("td")) cell.replaceWith(el("th", { scope: "col", dir: "auto" }, ...cell.childNodes));
    return;
  }
  const end = line.lastIndexOf("|");
  const row = el("tr");
  let from = line.indexOf("|") + 1;
  while (from <= end) {
    const next = line.indexOf("|", from);
    const to = next === end ? line.length : next; // the last cell takes the marks
    const cell = el("td", { dir: "auto" }, inline(text, at + from, at + next, cites), to > next ? inline(text, at + next + 1, at + to, cites) : null);
    row.append(cell);
    from = next + 1;
  }
  table.rows.append(row);
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

/** Show `names` between backticks as code, **words** between stars as strong. */
function coded(text) {
  return text.split(/`([^`\n]{1,80})`/).map((part, index) => (index % 2 ? el("code", null, part) : part.split(STRONG).map((words, n) => (n % 2 ? el("strong", null, words) : words))));
}
const STRONG = /\*\*(\S(?:[^*\n]{0,200}\S)?)\*\*/;

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
