// The source panel: a cited passage in its document, the exact span highlighted.

import { el, fill } from "../dom.js";
import { errorText } from "../api.js";
import { icon } from "./icons.js";
import { marked, queryRanges, quoted } from "./spans.js";
import { pageText, placeText } from "./words.js";

const AROUND = 5;
const DRAWN = /\.(pdf|tiff?|png|jpe?g|webp|bmp|gif)$/i; // files whose pages can be shown as they look
let panel = null;

/** Open the panel at one of the citations {number, spans, evidence, button, query?}. */
export function openSource(app, { collection, cites, index }) {
  if (panel) panel.close();
  const heading = el("h2", { id: "source-title", dir: "auto", tabindex: "-1" });
  const facts = el("p", { class: "source-facts", dir: "auto" });
  const place = el("p", { class: "source-count", "aria-live": "polite" });
  const body = el("div", { class: "source-body", tabindex: "0", role: "region", "aria-labelledby": "source-title" });
  const earlier = el("button", { type: "button", "aria-label": "Previous citation", title: "Previous citation (←)", onclick: () => move(-1) }, icon("left"));
  const later = el("button", { type: "button", "aria-label": "Next citation", title: "Next citation (→)", onclick: () => move(1) }, icon("right"));
  const dialog = el("dialog", { class: "source-panel", "aria-labelledby": "source-title" },
    el("div", { class: "source-head" },
      el("div", { class: "source-bar" }, place,
        el("span", { class: "row" }, earlier, later,
          el("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Close"))),
      heading, facts),
    body);
  let at = index;

  function move(step) {
    const next = at + step;
    if (next < 0 || next >= cites.length) return;
    at = next;
    show();
  }

  function show() {
    const cite = cites[at];
    const item = cite.evidence;
    earlier.disabled = at === 0;
    later.disabled = at === cites.length - 1;
    earlier.hidden = later.hidden = cites.length < 2;
    place.textContent = cites.length > 1 ? `${cite.number ? `Source [${cite.number}] · ` : ""}${at + 1} of ${cites.length}` : cite.number ? `Source [${cite.number}]` : "Source";
    if (!item) {
      heading.textContent = "This passage is not in the run any more";
      fill(facts);
      fill(body);
      return;
    }
    heading.textContent = item.title || item.source;
    const page = pageButton(app, item.collection || collection, item, cite, body);
    fill(facts, factsOf(item), page);
    drawPassages(body, [item], cite);
    const shown = at;
    surrounding(app, item.collection || collection, item).then((found) => {
      if (shown !== at || !dialog.open || !found) return;
      if (body.querySelector("canvas")) return;
      fill(facts, factsOf({ ...item, ...documentFacts(found.document) }), page);
      drawPassages(body, withCited(found.passages, item, cite), cite);
      readOn(app, item.collection || collection, item, body, found);
    }, (error) => {
      if (shown === at && error.status !== 404) body.append(el("p", { class: "hint" }, errorText(error)));
    });
  }

  dialog.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || cites.length < 2) return;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      event.preventDefault();
      move(event.key === "ArrowLeft" ? -1 : 1);
    }
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (panel === dialog) panel = null;
    const back = (cites[at].button && cites[at].button.isConnected && cites[at].button) || before;
    if (back && back.isConnected) back.focus();
  });
  const before = document.activeElement;
  panel = dialog;
  document.body.append(dialog);
  dialog.showModal();
  show();
  heading.focus();
}

/** Return a button that shows the page itself, the cited words marked; null where there is none. */
function pageButton(app, collection, item, cite, body) {
  if (!DRAWN.test(item.source || "")) return null;
  const number = item.page || 1;
  const button = el("button", { type: "button", class: "quiet", onclick: async () => {
    button.disabled = true;
    try {
      const quote = cite.spans.map((span) => span.quote).filter(Boolean).slice(0, 10);
      const answer = await app.api.get("/api/v1/documents/page", { collection, document_id: item.document_id, number, quote }, { raw: true });
      const drawn = await createImageBitmap(await answer.blob());
      const canvas = el("canvas", { class: "page-picture", width: drawn.width, height: drawn.height, role: "img", "aria-label": `Page ${number}, the cited words marked` });
      canvas.getContext("2d").drawImage(drawn, 0, 0);
      fill(body, canvas);
      body.scrollTop = 0;
      button.hidden = true;
    } catch (error) {
      button.replaceWith(el("span", { class: "soft" }, error.status === 404 ? "Its file has changed or is gone." : errorText(error)));
    }
  } }, "Show the page");
  return button;
}

function factsOf(item) {
  const facts = [
    item.collection, item.section, pageText(item), item.source !== item.title ? item.source : "",
    item.version ? `version ${item.version}` : "", item.updated_at ? `updated ${item.updated_at}` : "",
  ];
  return facts.filter(Boolean).join(" · ");
}

function documentFacts(given) {
  return Object.fromEntries(["version", "updated_at"].filter((name) => given && given[name]).map((name) => [name, given[name]]));
}

/** Return the passages around one of a document; null where the server can not tell. */
function surrounding(app, collection, item) {
  return app.api.get("/api/v1/documents/passages", {
    collection, document_id: item.document_id, around: item.ordinal ?? 0, before: AROUND, after: AROUND,
  });
}

/** Offer what stands before and after the passages shown, as far as the document goes. */
function readOn(app, collection, item, body, { document: facts, passages }) {
  const nodes = body.querySelectorAll(".passage");
  if (nodes.length !== passages.length || !passages.length) return; // the document has changed
  const edge = (ordinal, before) => {
    if (ordinal < 0 || ordinal >= facts.chunks) return [];
    const button = el("button", { type: "button", class: "quiet more", onclick: async () => {
      button.disabled = true;
      const sides = before ? { before: AROUND, after: 0 } : { before: 0, after: AROUND };
      const found = await app.api.get("/api/v1/documents/passages", { collection, document_id: item.document_id, around: ordinal, ...sides })
        .catch((error) => { app.toast(errorText(error)); return null; });
      if (!found) return;
      const read = found.passages.map((one) => el("p", { class: "passage", dir: "auto" }, one.text));
      const height = body.scrollHeight;
      if (before) button.replaceWith(...(read.length ? edge(found.passages[0].ordinal - 1, true) : []), ...read);
      else button.replaceWith(...read, ...(read.length ? edge(found.passages.at(-1).ordinal + 1, false) : []));
      if (before) body.scrollTop += body.scrollHeight - height;
      body.focus({ preventScroll: true });
    } }, before ? "Show what comes before" : "Show what comes after");
    return [button];
  };
  body.prepend(...edge(passages[0].ordinal - 1, true));
  body.append(...edge(passages.at(-1).ordinal + 1, false));
  aim(body);
}

/** Keep the run's own passage where the document has changed since. */
function withCited(passages, item, cite) {
  const there = passages.some((one) => one.chunk_id === item.chunk_id && rangesOf(one, cite).length);
  if (there || !cite.spans.length) return passages.some((one) => one.chunk_id === item.chunk_id) ? passages : [item];
  return [{ ...item, changed: true }];
}

function rangesOf(passage, cite) {
  return cite.spans.map((span) => quoted(passage.text, span)).filter(Boolean);
}

function drawPassages(body, passages, cite) {
  let section = null;
  const nodes = [];
  for (const passage of passages) {
    const cited = passage.chunk_id === cite.evidence.chunk_id;
    const where = placeText(passage, "page");
    if (where && where !== section && passages.length > 1) nodes.push(el("p", { class: "passage-place", dir: "auto" }, where));
    section = where;
    if (passage.changed) nodes.push(el("p", { class: "hint" }, "The document has changed since; this is the passage as the answer read it."));
    const ranges = cited ? rangesOf(passage, cite) : [];
    const words = cited && cite.query ? queryRanges(passage.text, cite.query) : [];
    nodes.push(el("p", { class: `passage${cited ? " cited" : ""}${["code", "table"].includes(passage.kind) ? " pre" : ""}`, dir: "auto" },
      ranges.length ? marked(passage.text, ranges, "span") : marked(passage.text, words, "word")));
  }
  fill(body, nodes);
  aim(body);
}

/** Bring what is cited into view. */
function aim(body) {
  const target = body.querySelector("mark.span") || body.querySelector(".cited");
  if (target) body.scrollTop = Math.max(0, target.offsetTop - body.offsetTop - body.clientHeight / 3);
}
