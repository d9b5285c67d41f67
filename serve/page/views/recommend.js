// Documents that meet a need, with factors, reasons, how they are related, and what one thinks of them.

import { errorText } from "../api.js";
import { bar, count, el, fill } from "../dom.js";
import { table } from "../manage/overview.js";
import { drawnFrom } from "../parts/drawing.js";
import { collectionOptions, filtersOf, whereField, whereLabel } from "../parts/scope.js";

export const title = "Recommend";

const OPINIONS = [["up", "Like"], ["down", "Dislike"], ["adopted", "I use it"]];
const KINDS = { depends_on: "depends on", works_with: "works with", instead_of: "instead of", replaced_by: "is replaced by" };

/** Show the form; #/recommend/COLLECTION/NEED is a list that was made before. */
export async function mount(root, app, { rest }) {
  const { collections } = await app.api.get("/api/v1/collections");
  const field = el("input", { type: "search", id: "need", dir: "auto", placeholder: "What do you need?", required: true });
  const collection = el("select", null, collectionOptions(collections));
  const where = whereField("recommend-where");
  const status = el("p", { class: "hint", role: "status" });
  const body = el("div");
  const form = el("form", { class: "search-form", role: "search", onsubmit: (event) => { event.preventDefault(); find(); } },
    el("label", { class: "sr", for: "need" }, "What you need"), field,
    el("button", { type: "submit", class: "primary" }, "Recommend"),
    el("div", { class: "row options-row" }, el("label", null, "Collection ", collection), whereLabel(where)));
  fill(root, el("h1", null, "Recommend"), form, status, body);
  field.focus();
  let running = null;
  if ([...collection.options].some((one) => one.value === rest[0])) collection.value = rest[0];
  if (rest[1]) {
    field.value = rest[1];
    find();
  }

  async function find() {
    const need = field.value.trim();
    if (!need) return;
    if (running) running.abort();
    const mine = (running = new AbortController());
    status.textContent = "Looking…";
    history.replaceState(null, "", `#/recommend/${encodeURIComponent(collection.value)}/${encodeURIComponent(need)}`);
    try {
      const [found, { ratings }] = await Promise.all([
        app.api.post("/api/v1/recommend", { need, collection: collection.value, where: filtersOf(where), draw: true }, { signal: mine.signal }),
        app.api.get("/api/v1/recommend/ratings", { collection: collection.value }, { signal: mine.signal })]);
      draw(found, new Map(ratings.map((one) => [one.document_id, one.rating])));
    } catch (error) {
      if (error.name === "AbortError") return;
      status.textContent = errorText(error);
      fill(body);
    }
  }

  function draw({ items, constraints, relations, drawing, warnings }, given) {
    const wanted = Object.entries(constraints).map(([name, one]) => `${name}: ${one.wanted}`);
    status.textContent = [items.length ? count(items.length, "document") : "Nothing meets this need.",
      wanted.length ? `must be so: ${wanted.join("; ")}` : "", ...warnings].filter(Boolean).join(" · ");
    const chosen = collection.value;
    fill(body,
      el("ol", { class: "plain results" }, items.map((item) => itemNode(app, item, item.collection || chosen, given.get(item.document_id)))),
      items.length > 1 ? comparison(items) : null,
      relations.length ? related(relations, drawing) : null);
  }

  return () => running && running.abort();
}

function itemNode(app, item, collection, rating) {
  const reasons = item.reasons.map((one) => el("li", { dir: "auto" }, one.citations.length
    ? el("button", { type: "button", class: "link", onclick: () => seen(app, item, collection) }, one.text) : one.text));
  const heading = el("button", { type: "button", class: "link result-title", dir: "auto", onclick: () => seen(app, item, collection) }, item.title);
  return el("li", { class: "result card" },
    el("h2", null, heading),
    el("p", { class: "under", dir: "auto" }, [item.collection, item.document_id].filter(Boolean).join(" · ")),
    el("ul", null, reasons),
    el("dl", { class: "channels" }, Object.entries(item.factors).map(([name, value]) =>
      el("div", null, el("dt", null, name), el("dd", null, bar(value, value.toFixed(2)))))),
    opinions(app, item, collection, rating));
}

/** Open the document, and let the server know that it was looked at. */
function seen(app, item, collection) {
  rate(app, item, collection, "viewed").catch(() => {});
  app.go(`#/documents/${encodeURIComponent(collection)}/${encodeURIComponent(item.document_id)}`);
}

function rate(app, item, collection, rating) {
  return app.api.put("/api/v1/recommend/ratings", { document_id: item.document_id, collection, rating });
}

function opinions(app, item, collection, rating) {
  const buttons = OPINIONS.map(([value, name]) => el("button", {
    type: "button", class: "quiet", "aria-pressed": String(rating === value), "aria-label": `${name}: ${item.title}`,
    onclick: async (event) => {
      const pressed = event.currentTarget;
      try {
        await rate(app, item, collection, value);
        for (const one of buttons) one.setAttribute("aria-pressed", String(one === pressed));
        app.toast("Later lists take it into account.");
      } catch (error) {
        app.toast(errorText(error));
      }
    },
  }, name));
  return el("p", { class: "row" }, buttons);
}

function comparison(items) {
  const names = [...new Set(items.flatMap((item) => Object.keys(item.factors)))];
  return table("Compared", ["Document", "score", ...names], items.map((item) =>
    [item.title, item.score.toFixed(2), ...names.map((name) => (name in item.factors ? item.factors[name].toFixed(2) : "–"))]));
}

function related(relations, drawing) {
  return el("section", { class: "admin-section" }, el("h2", null, "How they are related"),
    drawnFrom(drawing || "", "How they are related"),
    el("ul", null, relations.map((one) => el("li", { dir: "auto" }, `${one.title} ${KINDS[one.kind]} ${one.target}`))));
}
