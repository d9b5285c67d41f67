// What is remembered of the reader: listed, edited, saved and deleted by them.

import { errorText } from "../api.js";
import { count, dateText, el, fill, saveFile } from "../dom.js";
import { confirmed } from "../manage/confirm.js";

export const title = "Memory";
const PAGE = 100;

export async function mount(root, app) {
  const status = el("p", { class: "hint", role: "status" });
  const list = el("ol", { class: "plain results" });
  const more = el("button", { type: "button", hidden: true }, "Earlier");
  const save = el("button", { type: "button", onclick: () => saved(app, status) }, "Save as JSON");
  fill(root, el("div", { class: "row" }, el("h1", null, "Memory"), save),
    el("p", { class: "hint" }, "Notes of what you stated in conversations. Only you see them."), status, list, el("p", { class: "row pager" }, more));
  await show("");

  async function show(after) {
    const { notes } = await app.api.get("/api/v1/memory", { limit: PAGE, after });
    const rows = notes.map((note) => noteNode(app, note, status, () => show("")));
    if (after) list.append(...rows);
    else fill(list, rows);
    status.textContent = list.children.length ? count(list.children.length, "note") : "Nothing is remembered yet.";
    save.disabled = !list.children.length;
    more.hidden = notes.length < PAGE;
    more.onclick = () => show(notes.at(-1).note_id);
  }
}

function noteNode(app, note, status, refresh) {
  const path = `/api/v1/memory/${encodeURIComponent(note.note_id)}`;
  const node = el("li", { class: "result card", id: `note-${note.note_id}` });
  draw();
  return node;

  function draw() {
    fill(node,
      el("p", { class: "snippet", dir: "auto", lang: note.language === "und" ? null : note.language }, note.content),
      el("p", { class: "under" }, [dateText(note.observed_at), sourceText(note.provenance), standing(note)].filter(Boolean).join(" · ")),
      el("div", { class: "row" }, note.superseded_by ? null : el("button", { type: "button", class: "quiet", onclick: edit }, "Edit"),
        el("button", { type: "button", class: "quiet", onclick: remove }, "Delete")));
  }

  function edit() {
    const field = el("input", { "aria-label": "What it says", value: note.content, maxlength: 2000, required: true, dir: "auto" });
    fill(node, el("form", { class: "row", onsubmit: (event) => { event.preventDefault(); attempt(() => app.api.patch(path, { content: field.value })); } },
      field, el("button", { type: "submit", class: "primary" }, "Keep"), el("button", { type: "button", class: "quiet", onclick: draw }, "Cancel")));
    field.focus();
  }

  async function remove() {
    const text = `“${note.content}” is forgotten, with its edits; what it had replaced holds again. This can not be undone.`;
    if (await confirmed({ heading: "Delete this note?", text, action: "Delete" })) await attempt(() => app.api.del(path));
  }

  async function attempt(change) {
    try {
      await change();
      await refresh();
    } catch (error) {
      status.textContent = errorText(error);
    }
  }
}

function sourceText(source) {
  if (source.kind === "turn") return "you stated it";
  if (source.kind === "edit") return "you edited it";
  return `an answer that cites ${[...new Set(source.citations.map((one) => one.source))].join(", ")}`;
}

function standing(note) {
  if (note.superseded_by) return `superseded on ${dateText(note.superseded_at)}`;
  return note.links.some((one) => one.kind === "contradicts") ? "another note contradicts it" : "";
}

async function saved(app, status) {
  try {
    const text = await app.api.text("/api/v1/memory/export");
    saveFile("memory.json", "application/json", text);
  } catch (error) {
    status.textContent = errorText(error);
  }
}
