// The conversations of the caller; where the server keeps none, their newest questions.

import { icon } from "./icons.js";
import { dateText, el, fill, saveFile } from "../dom.js";
import { confirmed } from "../manage/confirm.js";

const BASE = "/api/v1/conversations";
const LIMIT = 50;

export const talks = {
  /** Begin a conversation; null where the server keeps none. */
  begin: (app, collection) => absent(app.api.post(BASE, { collection })),
  load: (app, id) => app.api.get(`${BASE}/${encodeURIComponent(id)}`),
  rename: (app, id, title) => app.api.patch(`${BASE}/${encodeURIComponent(id)}`, { title }),
  share: (app, id, readers) => app.api.put(`${BASE}/${encodeURIComponent(id)}/readers`, readers),
  unshare: (app, id) => app.api.del(`${BASE}/${encodeURIComponent(id)}/readers`),
  remove: (app, id) => app.api.del(`${BASE}/${encodeURIComponent(id)}`),
};

/** Return the item that adds older conversations after the last one listed. */
function older(app, listed, item) {
  if (listed.length < LIMIT) return null;
  const row = el("li", null, el("button", { type: "button", class: "quiet", onclick: async () => {
    const { conversations } = await app.api.get(BASE, { limit: LIMIT, before: listed.at(-1).conversation_id })
      .catch((error) => { app.toast(error.message); return { conversations: [] }; });
    row.replaceWith(...[...conversations.map(item), older(app, conversations, item)].filter(Boolean));
  } }, "Show older ones"));
  return row;
}

async function absent(request) {
  try {
    return await request;
  } catch (error) {
    if (error.status === 404 || error.status === 405) return null;
    throw error;
  }
}

/** Draw the list at the side; returns whether the server keeps conversations. */
export async function drawTalks(app, root, current, onGone) {
  const listed = await absent(app.api.get(BASE, { limit: LIMIT }));
  if (!listed) {
    const { runs } = await app.api.get("/api/v1/runs", { limit: LIMIT });
    fill(root, el("h2", null, "Your questions"), list(runs.map((run) => entry(`#/run/${run.run_id}`, run.question, run.created_at, run.run_id === current))));
    return false;
  }
  const itemOf = (one) => {
    const item = entry(`#/chat/${one.conversation_id}`, one.title || "New conversation", one.updated_at, one.conversation_id === current);
    item.append(menu(app, one, item, () => drawTalks(app, root, current, onGone), onGone));
    return item;
  };
  const { conversations, shared = [] } = listed;
  const others = shared.map((one) => entry(`#/chat/${one.conversation_id}`, `${one.title || "Conversation"} (${one.user})`, one.updated_at, one.conversation_id === current));
  fill(root, el("h2", null, "Conversations"), list([...conversations.map(itemOf), older(app, conversations, itemOf)].filter(Boolean)),
    ...(others.length ? [el("h2", null, "Shared with you"), list(others)] : []));
  return true;
}

function list(items) {
  return items.length ? el("ul", { class: "plain talks" }, items) : el("p", { class: "soft" }, "Nothing yet.");
}

function entry(href, text, when, isCurrent) {
  return el("li", null, el("a", { href, "aria-current": isCurrent ? "true" : null },
    el("span", { class: "talk-title", dir: "auto" }, text), el("span", { class: "talk-when" }, dateText(when))));
}

function menu(app, talk, item, redraw, onGone) {
  const attempt = (work) => work().catch((error) => app.toast(error.message));
  const name = `“${talk.title || "New conversation"}”`;
  const rename = () => {
    const field = el("input", { type: "text", value: talk.title, "aria-label": `New title of ${name}`, maxlength: "200" });
    const form = el("form", { class: "row rename", onsubmit: (event) => {
      event.preventDefault();
      attempt(async () => { await talks.rename(app, talk.conversation_id, field.value.trim()); await redraw(); });
    } }, field, el("button", { type: "submit" }, "Keep"), el("button", { type: "button", class: "quiet", onclick: redraw }, "Cancel"));
    fill(item, form);
    field.focus();
  };
  const remove = () => {
    const yes = el("button", { type: "button", class: "danger", onclick: () => attempt(async () => {
      await talks.remove(app, talk.conversation_id);
      onGone(talk.conversation_id);
      await redraw();
    }) }, "Delete");
    fill(item, el("div", { class: "row rename" }, el("span", null, `Delete ${name}?`), yes, el("button", { type: "button", class: "quiet", onclick: redraw }, "Keep it")));
    yes.focus();
  };
  const share = () => attempt(async () => {
    const { readers } = await talks.load(app, talk.conversation_id);
    const field = el("input", { "aria-label": "Who may read it", placeholder: "legal, user:ann", spellcheck: "false", size: 28, value: readers ? readers.join(", ") || "everyone" : "" });
    const agreed = await confirmed({
      heading: `Who may read ${name}?`,
      text: el("span", null, "Roles and user:NAME, with commas, “everyone”, or nothing. They see your questions, and the answers whose sources they may read. ", field),
      action: "Share",
    });
    if (!agreed) return;
    const acl = field.value.split(",").map((one) => one.trim()).filter(Boolean);
    if (!acl.length) await talks.unshare(app, talk.conversation_id);
    else await talks.share(app, talk.conversation_id, acl.join() === "everyone" ? { everyone: true } : { acl });
    app.toast(acl.length ? `Readers open ${location.origin}/#/chat/${talk.conversation_id}` : "Nobody else reads it.");
  });
  const save = () => attempt(async () => {
    const { turns, title } = await talks.load(app, talk.conversation_id);
    const text = turns.map((one) => `## ${one.question}\n\n${one.answer}\n`).join("\n");
    saveFile("conversation.md", "text/markdown", `# ${title}\n\n${text}`);
  });
  return el("span", { class: "talk-menu" },
    el("button", { type: "button", class: "quiet", "aria-label": `Share ${name}`, title: "Share", onclick: share }, icon("share")),
    el("button", { type: "button", class: "quiet", "aria-label": `Save ${name}`, title: "Save as Markdown", onclick: save }, icon("save")),
    el("button", { type: "button", class: "quiet", "aria-label": `Rename ${name}`, title: "Rename", onclick: rename }, icon("pencil")),
    el("button", { type: "button", class: "quiet", "aria-label": `Delete ${name}`, title: "Delete", onclick: remove }, icon("cross")));
}
