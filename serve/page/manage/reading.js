// One document, passage by passage.

import { count, dayText, el, fill } from "../dom.js";
import { errorText } from "../api.js";
import { placeText } from "../parts/words.js";

const STEP = 25;

/** Show a document in `root`; `at` is the number of a passage to begin with. */
export async function readDocument(root, app, collection, id, at) {
  const first = Math.max(0, Math.floor(at / STEP) * STEP);
  const found = await passages(app, collection, id, first);
  const { document: facts } = found;
  const list = el("div", { class: "reading" });
  const earlier = el("button", { type: "button", onclick: () => more(-1) }, "Earlier passages");
  const later = el("button", { type: "button", onclick: () => more(1) }, "Later passages");
  let from = first;
  let to = first + found.passages.length;
  fill(root,
    el("p", null, el("a", { href: `#/documents/${encodeURIComponent(collection)}` }, `← ${collection}`)),
    el("h1", { dir: "auto" }, facts.title || facts.source),
    factsList(facts), earlier, list, later);
  draw(found.passages, false);

  function draw(given, before) {
    const nodes = given.map((one, place) => passageNode(one, given[place - 1]));
    if (before) list.prepend(...nodes.flat());
    else list.append(...nodes.flat());
    earlier.hidden = from <= 0;
    later.hidden = to >= facts.chunks;
  }

  async function more(side) {
    try {
      const start = side < 0 ? Math.max(0, from - STEP) : to;
      const next = (await passages(app, collection, id, start)).passages.filter((one) => one.ordinal < from || one.ordinal >= to);
      if (side < 0) from = start;
      else to += Math.max(1, next.length);
      draw(next, side < 0);
    } catch (error) {
      app.toast(errorText(error));
    }
  }
}

function passages(app, collection, id, first) {
  return app.api.get("/api/v1/documents/passages", { collection, document_id: id, around: first, before: 0, after: STEP - 1 });
}

function factsList(facts) {
  const rows = [
    ["Source", facts.source], ["Format", facts.format], ["Language", facts.language === "und" ? "" : facts.language],
    ["Version", facts.version], ["Updated", dayText(facts.updated_at || facts.indexed_at)], ["Passages", count(facts.chunks, "passage")],
  ];
  return el("dl", { class: "facts" }, rows.filter(([, value]) => value).map(([name, value]) =>
    el("div", null, el("dt", null, name), el("dd", { dir: "auto" }, value))));
}

function passageNode(one, before) {
  const place = placeText(one, "page");
  const earlier = before && placeText(before, "page");
  return [
    place && place !== earlier ? el("h2", { class: "reading-head", dir: "auto" }, place) : "",
    el("p", { class: one.kind === "code" || one.kind === "table" ? "pre" : "prose", dir: "auto" }, one.text),
  ].filter(Boolean);
}
