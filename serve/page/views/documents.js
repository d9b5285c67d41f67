// The documents of a collection: listed, read, added and deleted.

import { errorText } from "../api.js";
import { count, dateText, el, fill, saveFile } from "../dom.js";
import { confirmed } from "../manage/confirm.js";
import { readDocument } from "../manage/reading.js";
import { sourcesPanel } from "../manage/sources.js";
import { uploadPanel } from "../manage/uploads.js";
import { treePanel } from "../parts/tree.js";

export const title = "Documents";
const PAGE = 50;

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
  const choose = el("select", { id: "collection", onchange: () => app.go(`#/documents/${encodeURIComponent(choose.value)}`) });
  const body = el("tbody");
  const status = el("p", { class: "hint", role: "status" });
  const table = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": "documents-title" },
    el("table", { class: "documents" }, el("thead", null, headRow(app.me.may.write)), body));
  const report = el("button", { type: "button", title: "What these documents are like, in ten figures" }, "Report");
  report.onclick = saveReport;
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
      el("span", null, el("label", { for: "collection" }, "Collection "), choose, " ", report)),
    uploads && uploads.node, kept && kept.node, treePanel(app, () => current), status, table, pager);
  await refresh();

  /** Read the collections and the page again; a first upload makes its collection the one shown. */
  async function refresh(filled) {
    ({ collections } = await app.api.get("/api/v1/collections"));
    const names = collections.map((one) => one.name);
    if (!names.includes(current)) current = (names.includes(filled) && filled) || (wanted && !names.length ? wanted : names[0]) || "";
    if (uploads) uploads.known(names);
    fill(choose, collections.map((one) => el("option", { value: one.name, selected: one.name === current }, `${one.name} (${one.documents.toLocaleString()})`)));
    choose.disabled = report.disabled = !names.length;
    if (!filled || filled === current) await show(seen.at(-1) || "");
  }

  async function show(after) {
    const mine = (turn += 1);
    if (!seen.length || seen.at(-1) !== after) seen.push(after);
    if (!collections.length) {
      fill(body);
      table.hidden = pager.hidden = true;
      status.textContent = app.me.may.write ? "There are no documents yet. Add the first ones above." : "There are no documents that you may see.";
      return;
    }
    try {
      const { documents } = await app.api.get("/api/v1/documents", { collection: current, after, limit: PAGE + 1 });
      if (mine !== turn) return;
      if (documents.length || seen.length < 2) draw(documents);
      else back.onclick(); // the last one of the last page was deleted
    } catch (error) {
      status.textContent = errorText(error);
    }
  }

  function draw(documents) {
    const shown = documents.slice(0, PAGE);
    status.textContent = "";
    table.hidden = false;
    fill(body, shown.map((one) => rowNode(app, current, one, remove, share)));
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

  async function share(one) {
    const names = el("input", { "aria-label": "Who may read it", placeholder: "legal, user:ann", spellcheck: "false", size: 28 });
    const agreed = await confirmed({
      heading: `Who may read “${one.title || one.source}”?`,
      text: el("span", null, "Roles and user:NAME, with commas, or “everyone”. They replace those of now, for all that its file holds. ", names),
      action: "Replace",
    });
    if (!agreed) return;
    const acl = names.value.split(",").map((name) => name.trim()).filter(Boolean);
    try {
      const readers = acl.join() === "everyone" ? { everyone: true } : { acl };
      const done = await app.api.put("/api/v1/documents", readers, { collection: current, document_id: one.document_id });
      app.toast(`Read by: ${done.acl.join(", ") || "everyone"}`);
    } catch (error) {
      app.toast(errorText(error));
    }
    await refresh();
  }

  return () => { if (uploads) { uploads.leave(); kept.leave(); } };
}

function headRow(writes) {
  const names = ["Title", "Source", "Format", "Language", "Version", "Passages", "Updated"];
  return el("tr", null, names.map((name) => el("th", { scope: "col", class: name === "Passages" ? "number" : null }, name)),
    writes ? el("th", { scope: "col" }, el("span", { class: "sr" }, "Actions")) : null);
}

function rowNode(app, collection, one, remove, share) {
  const name = one.title || one.source;
  const place = `#/documents/${encodeURIComponent(collection)}/${encodeURIComponent(one.document_id)}`;
  return el("tr", null,
    el("th", { scope: "row", dir: "auto", class: "document-title" }, el("a", { href: place }, name)),
    el("td", { dir: "auto", class: "soft" }, one.source),
    el("td", null, one.format), el("td", null, one.language === "und" ? "" : one.language), el("td", null, one.version),
    el("td", { class: "number" }, one.chunks.toLocaleString(), el("span", { class: "narrow" }, ` ${count(one.chunks, "passage").replace(/^\S+ /, "")}`)),
    el("td", { class: "date" }, one.updated_at || dateText(one.indexed_at)),
    app.me.may.write ? el("td", { class: "end" },
      el("button", { type: "button", class: "quiet", "aria-label": `Readers of ${name}`, onclick: () => share(one) }, "Readers"),
      el("button", { type: "button", class: "quiet danger-text", "aria-label": `Delete ${name}`, onclick: () => remove(one) }, "Delete")) : null);
}
