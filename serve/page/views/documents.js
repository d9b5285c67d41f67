// The documents of a collection: listed, read, added and deleted.

import { errorText } from "../api.js";
import { count, dateText, dayText, el, fill, saveFile } from "../dom.js";
import { confirmed } from "../manage/confirm.js";
import { readDocument } from "../manage/reading.js";
import { sourcesPanel } from "../manage/sources.js";
import { uploadPanel } from "../manage/uploads.js";
import { treePanel } from "../parts/tree.js";

export const title = "Documents";
const PAGE = 50;
const COLUMNS = [["Title", "title"], ["Source", "source"], ["Format", "format"], ["Language", "language"], ["Version", "version"], ["Passages", "chunks"], ["Updated", "updated"]];

export async function mount(root, app, { rest }) {
  const [collection = "", document = "", at = "0"] = rest || [];
  if (document) return readDocument(root, app, collection, document, Number(at) || 0);
  return listView(root, app, collection);
}

async function listView(root, app, wanted) {
  let collections = [];
  let current = wanted;
  let seen = [""]; // the last id before each page, up to the one shown
  let turn = 0;
  let order = ""; // a column, with "-" before it from the end; "" by id
  const chosen = new Set();
  const find = el("input", { type: "search", maxlength: 200, placeholder: "Title or source", "aria-label": "Find a document", size: 18, oninput: () => { clearTimeout(waiting); waiting = setTimeout(again, 250); } });
  let waiting = 0;
  const sorter = el("select", { onchange: () => { order = sorter.value; again(); } }, el("option", { value: "" }, "no order"),
    COLUMNS.flatMap(([name, key]) => [el("option", { value: key }, name), el("option", { value: `-${key}` }, `${name}, from the end`)]));
  const sorting = el("label", { class: "narrow", hidden: true }, "Sort by ", sorter); // where no head is shown
  const several = el("button", { type: "button", class: "danger", hidden: true, onclick: () => removeAll() });
  const choose = el("select", { id: "collection", onchange: () => app.go(`#/documents/${encodeURIComponent(choose.value)}`) });
  const body = el("tbody");
  const status = el("p", { class: "hint", role: "status" });
  const table = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": "documents-title" },
    el("table", { class: "documents" }, el("thead"), body));
  const head = table.querySelector("thead");
  const report = el("button", { type: "button", title: "What these documents are like, in ten figures" }, "Report");
  report.onclick = saveReport;
  const later = el("button", { type: "button", hidden: !app.me.may.admin, title: "Who may read what comes later", onclick: () => shareLater() }, "Readers");
  const back = el("button", { type: "button" }, "← Previous");
  back.onclick = () => { seen.pop(); show(seen.at(-1) || ""); };
  const next = el("button", { type: "button" }, "Next →");
  const pager = el("div", { class: "row pager" }, back, el("span", { class: "soft" }), next);
  const uploads = app.me.may.write
    ? uploadPanel(app, { target: () => current, collections: [], done: (name) => refresh(name) })
    : null;
  const kept = app.me.may.write ? sourcesPanel(app, () => current, (name) => refresh(name)) : null;
  fill(root,
    el("div", { class: "row documents-head" }, el("h1", { id: "documents-title" }, "Documents"),
      el("span", null, el("label", { for: "collection" }, "Collection "), choose, " ", find, " ", report, " ", later)),
    uploads && uploads.node, kept && kept.node, treePanel(app, () => current), status, several, sorting, table, pager);
  await refresh();

  /** Read the collections and the page again; a first upload makes its collection the one shown. */
  async function refresh(filled) {
    ({ collections } = await app.api.get("/api/v1/collections"));
    const names = collections.map((one) => one.name);
    if (!names.includes(current)) current = (names.includes(filled) && filled) || (wanted && !names.length ? wanted : names[0]) || "";
    if (uploads) uploads.known(names);
    fill(choose, collections.map((one) => el("option", { value: one.name, selected: one.name === current }, `${one.name} (${one.documents.toLocaleString()})`)));
    choose.disabled = report.disabled = later.disabled = !names.length;
    if (!filled || filled === current) await show(seen.at(-1) || "");
  }

  /** Show the first page anew, as it is searched and sorted now. */
  function again() {
    seen = [""];
    return show("");
  }

  async function sort(column) {
    order = order === column ? `-${column}` : order === `-${column}` ? "" : column;
    await again();
    head.querySelector("[aria-sort] button")?.focus();
  }

  function tick(id, on) {
    if (on) chosen.add(id); else chosen.delete(id);
    several.hidden = !chosen.size;
    several.textContent = `Delete ${count(chosen.size, "document")}`;
  }

  async function show(after) {
    const mine = (turn += 1);
    if (!seen.length || seen.at(-1) !== after) seen.push(after);
    if (!collections.length) {
      fill(body);
      table.hidden = sorting.hidden = pager.hidden = true;
      status.textContent = app.me.may.write ? "There are no documents yet. Add the first ones above." : "There are no documents that you may see.";
      return;
    }
    try {
      const sorted = { q: find.value.trim(), sort: order.replace("-", ""), descending: order.startsWith("-") || null };
      const paged = sorted.q || order ? { ...sorted, offset: (seen.length - 1) * PAGE } : { after };
      const { documents, total } = await app.api.get("/api/v1/documents", { collection: current, limit: PAGE + 1, ...paged });
      if (mine !== turn) return;
      if (documents.length || seen.length < 2) draw(documents, total);
      else back.onclick(); // the last one of the last page was deleted
    } catch (error) {
      status.textContent = errorText(error);
    }
  }

  function draw(documents, total) {
    const shown = documents.slice(0, PAGE);
    status.textContent = find.value.trim() ? count(total, "document") : "";
    table.hidden = sorting.hidden = false;
    chosen.clear();
    tick("", false);
    sorter.value = order;
    fill(head, headRow(app.me.may.write, order, sort));
    fill(body, shown.map((one) => rowNode(app, current, one, { remove, share, tick })));
    pager.hidden = seen.length < 2 && documents.length <= PAGE;
    pager.children[1].textContent = `Page ${seen.length}`;
    back.disabled = seen.length < 2;
    next.disabled = documents.length <= PAGE;
    next.onclick = () => show(shown.at(-1).document_id);
  }

  async function saveReport() {
    status.textContent = "Reading the documents…";
    try {
      const { page } = await app.api.get("/api/v1/report", { collection: current });
      saveFile(`report-${current}.html`, "text/html", page);
      status.textContent = "";
    } catch (error) {
      status.textContent = errorText(error);
    }
  }

  async function removeAll() {
    const ids = [...chosen];
    const agreed = await confirmed({
      heading: `Delete ${count(ids.length, "document")}?`,
      text: "They are deleted with their passages and cannot be brought back. Kept answers lose their text; what people typed stays.",
      action: "Delete",
    });
    if (!agreed) return;
    let done = 0;
    try {
      for (const id of ids) {
        await app.api.del("/api/v1/documents", { collection: current, document_id: id });
        done += 1;
      }
    } catch (error) {
      app.toast(errorText(error));
    }
    app.toast(`Deleted: ${count(done, "document")}`);
    await refresh();
  }

  async function remove(one) {
    const agreed = await confirmed({
      heading: `Delete “${one.title || one.source}”?`,
      text: "It is deleted with its passages and cannot be brought back. Kept answers lose its text; what people typed stays.",
      action: "Delete",
    });
    if (!agreed) return;
    try {
      await app.api.del("/api/v1/documents", { collection: current, document_id: one.document_id });
      app.toast(`Deleted: ${one.title || one.source}`);
    } catch (error) {
      app.toast(errorText(error));
    }
    await refresh();
  }

  function share(one) {
    return replaceReaders(`Who may read “${one.title || one.source}”?`,
      "They replace those of now, for all that its file holds.", "/api/v1/documents", { document_id: one.document_id });
  }

  function shareLater() {
    const now = readersOf(collections.find((one) => one.name === current)?.default_acl);
    return replaceReaders(`Who may read what comes later into “${current}”?`,
      `Where it has no readers of its own. Now: ${now}.`, "/api/v1/collections", { later: true });
  }

  /** Ask who may read, and replace the readers of what a path and its query name. */
  async function replaceReaders(heading, text, path, query) {
    const names = el("input", { "aria-label": "Who may read it", placeholder: "legal, user:ann", spellcheck: "false", size: 28 });
    const says = el("span", null, `Roles and user:NAME, with commas, or “everyone”. ${text} `, names);
    if (!await confirmed({ heading, text: says, action: "Replace" })) return;
    const acl = names.value.split(",").map((name) => name.trim()).filter(Boolean);
    try {
      const readers = acl.join() === "everyone" ? { everyone: true } : { acl };
      const done = await app.api.put(path, readers, { collection: current, ...query });
      app.toast(`Read by: ${readersOf(done.acl || done.default)}`);
    } catch (error) {
      app.toast(errorText(error));
    }
    await refresh();
  }

  return () => { if (uploads) { uploads.leave(); kept.leave(); } };
}

const readersOf = (acl) => (acl || []).join(", ") || "everyone";

function headRow(writes, order, sort) {
  const sorted = (key) => (order === key ? "ascending" : order === `-${key}` ? "descending" : null);
  return el("tr", null, writes ? el("th", { scope: "col" }, el("span", { class: "sr" }, "Choose")) : null,
    COLUMNS.map(([name, key]) => el("th", { scope: "col", class: key === "chunks" ? "number" : null, "aria-sort": sorted(key) },
      el("button", { type: "button", class: "sort", onclick: () => sort(key) }, name, { ascending: " ↑", descending: " ↓" }[sorted(key)] || ""))),
    writes ? el("th", { scope: "col" }, el("span", { class: "sr" }, "Actions")) : null);
}

function rowNode(app, collection, one, { remove, share, tick }) {
  const name = (one.title || one.source).replaceAll("`", "");
  const place = `#/documents/${encodeURIComponent(collection)}/${encodeURIComponent(one.document_id)}`;
  return el("tr", null,
    app.me.may.write ? el("td", null, el("input", { type: "checkbox", "aria-label": `Choose ${name}`, onchange: (event) => tick(one.document_id, event.target.checked) })) : null,
    el("th", { scope: "row", dir: "auto", class: "document-title" }, el("a", { href: place }, name)),
    el("td", { dir: "auto", class: "soft" }, one.source),
    el("td", null, one.format), el("td", null, one.language === "und" ? "" : one.language), el("td", null, one.version),
    el("td", { class: "number" }, one.chunks.toLocaleString(), el("span", { class: "narrow" }, ` ${count(one.chunks, "passage").replace(/^\S+ /, "")}`)),
    el("td", { class: "date", title: one.updated_at ? null : `read ${dateText(one.indexed_at)}` }, dayText(one.updated_at || one.indexed_at)),
    app.me.may.write ? el("td", { class: "end" },
      el("button", { type: "button", class: "quiet", "aria-label": `Readers of ${name}`, onclick: () => share(one) }, "Readers"),
      el("button", { type: "button", class: "quiet danger-text", "aria-label": `Delete ${name}`, onclick: () => remove(one) }, "Delete")) : null);
}
