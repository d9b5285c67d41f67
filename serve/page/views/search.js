// Passages without an answer.

import { errorText } from "../api.js";
import { bar, count, el, fill } from "../dom.js";
import { collectionOptions, filtersOf, whereField, whereLabel } from "../parts/scope.js";
import { openSource } from "../parts/source.js";
import { marked, queryRanges, window as cut } from "../parts/spans.js";
import { channelName, placeText } from "../parts/words.js";

export const title = "Search";

const SNIPPET = 420;
const KINDS = [["hybrid", "Words and meaning"], ["linked", "With links"], ["keyword", "Words"], ["vector", "Meaning"], ["classic", "Classic"]];

/** Show the search; #/search/COLLECTION/QUERY is one that was made before. */
export async function mount(root, app, { rest }) {
  const { collections } = await app.api.get("/api/v1/collections");
  const field = el("input", { type: "search", id: "query", dir: "auto", placeholder: "Find passages…", required: true });
  const collection = el("select", null, collectionOptions(collections));
  const where = whereField("search-where");
  const kind = el("select", null, KINDS.map(([value, name]) => el("option", { value }, name)));
  const status = el("p", { class: "hint", role: "status" });
  const list = el("ol", { class: "plain results" });
  const form = el("form", { class: "search-form", role: "search", onsubmit: (event) => { event.preventDefault(); find(); } },
    el("label", { class: "sr", for: "query" }, "Words to look for"), field,
    el("button", { type: "submit", class: "primary" }, "Search"),
    el("div", { class: "row options-row" }, el("label", null, "Collection ", collection), el("label", null, "By ", kind), whereLabel(where)));
  fill(root, el("h1", null, "Search"), form, status, list);
  field.focus();
  let running = null;
  if ([...collection.options].some((one) => one.value === rest[0])) collection.value = rest[0];
  if (rest[1]) {
    field.value = rest[1];
    find();
  }

  async function find() {
    const query = field.value.trim();
    if (!query) return;
    if (running) running.abort();
    const mine = (running = new AbortController());
    status.textContent = "Searching…";
    history.replaceState(null, "", `#/search/${encodeURIComponent(collection.value)}/${encodeURIComponent(query)}`);
    try {
      const found = await app.api.post("/api/v1/search", { query, collection: collection.value, where: filtersOf(where), pipeline: kind.value, k: 20 }, { signal: mine.signal });
      draw(query, found);
    } catch (error) {
      if (error.name === "AbortError") return;
      status.textContent = errorText(error);
      fill(list);
    }
  }

  function draw(query, { results, warnings }) {
    status.textContent = [results.length ? count(results.length, "passage") : "Nothing was found.", ...warnings].join(" · ");
    const best = bestOf(results);
    fill(list, results.map((item) => resultNode(app, item, query, best, collection.value)));
  }

  return () => running && running.abort();
}

function bestOf(results) {
  const best = {};
  for (const { scores } of results) {
    for (const [name, value] of Object.entries(scores)) best[name] = Math.max(best[name] || 0, Math.abs(value));
  }
  return best;
}

function resultNode(app, item, query, best, collection) {
  const heading = el("button", { type: "button", class: "link result-title", dir: "auto", onclick: () => openSource(app, {
    collection, index: 0, cites: [{ number: 0, spans: [], evidence: item, button: heading, query }],
  }) }, item.title || item.source);
  const place = [item.collection, placeText(item), item.title && item.title !== item.source ? item.source : ""].filter(Boolean).join(" · ");
  return el("li", { class: "result card" },
    el("h2", null, heading),
    el("p", { class: "under", dir: "auto" }, place),
    el("p", { class: "snippet", dir: "auto", lang: item.language && item.language !== "und" ? item.language : null }, snippet(item.text, query)),
    el("dl", { class: "channels" }, [["score", item.score, 1], ...Object.entries(item.scores).map(([name, value]) => [name, value, best[name] || 1])].map(([name, value, top]) =>
      el("div", null, el("dt", null, name === "score" ? "Rank score" : channelName(name)), el("dd", null, bar(Math.abs(value) / top, value.toFixed(2)))))));
}

/** Return the part of a passage in which most words of the query stand. */
function snippet(text, query) {
  const [from, to] = cut(text, queryRanges(text, query), SNIPPET);
  const part = text.slice(from, to);
  return [from ? "… " : "", marked(part, queryRanges(part, query), "word"), to < text.length ? " …" : ""];
}
