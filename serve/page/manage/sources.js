// The sources that are kept in sync: listed, added, synced and removed.

import { errorText } from "../api.js";
import { dateText, el, fill } from "../dom.js";
import { confirmed } from "./confirm.js";
import { follow } from "./sending.js";

const EVERY = [[0, "by hand"], [3600, "every hour"], [86400, "every day"], [604800, "every week"]];
const STATES = { ok: "in sync", partial: "in sync, in part", failed: "failed", new: "not read yet" };

/** Return a part that reads the sources when it is opened. `target()` is the collection shown; `done(collection)` is called after a sync. */
export function sourcesPanel(app, target, done) {
  const gone = new AbortController();
  const status = el("p", { class: "hint", role: "status" });
  const list = el("ul", { class: "kept" });
  const name = el("input", { maxlength: 64, required: true, spellcheck: "false", autocomplete: "off", placeholder: "wiki", size: 10 });
  const address = el("input", { type: "url", maxlength: 2000, required: true, spellcheck: "false", autocomplete: "off", placeholder: "https://…", class: "wide" });
  const every = el("select", null, EVERY.map(([seconds, text]) => el("option", { value: seconds }, text)));
  const readers = el("input", { spellcheck: "false", autocomplete: "off", placeholder: `everyone in ${app.me.tenant}`, size: 18 });
  const form = el("form", { class: "key-form", onsubmit: (event) => { event.preventDefault(); add(); } },
    el("label", null, "Name", name), el("label", null, "Address", address), el("label", null, "Synced", every), el("label", null, "Readers", readers),
    el("button", { type: "submit", class: "primary" }, "Add source"));
  const panel = el("details", { class: "tree" }, el("summary", null, "Sources kept in sync"),
    form, el("p", { class: "hint" }, "A page, feed or sitemap; with / at its end the site below it; git+https://… a repository. Folders, mailboxes and stores: the operator's ", el("code", null, "carrel source add"), "."),
    status, list);
  panel.ontoggle = () => { if (panel.open) refresh(); };

  async function refresh() {
    try {
      const { sources } = await app.api.get("/api/v1/sources", { all: app.me.may.admin || null });
      fill(list, sources.map(item));
      if (!sources.length && !status.textContent) status.textContent = "There is no source yet.";
    } catch (error) {
      status.textContent = errorText(error);
    }
  }

  function item(one) {
    const mine = one.user === app.me.user;
    const when = (EVERY.find(([seconds]) => seconds === one.every) || [0, `every ${Math.round(one.every / 60)} min`])[1];
    const sync = el("button", { type: "button", class: "quiet", "aria-label": `Sync ${one.name}`, onclick: () => run(one, sync) }, "Sync now");
    const remove = el("button", { type: "button", class: "quiet danger-text", "aria-label": `Remove ${one.name}`, onclick: () => drop(one) }, "Remove");
    return el("li", null,
      el("span", null, el("b", { dir: "auto" }, one.name), ` → ${one.collection}${mine ? "" : ` (of ${one.user || "the operator"})`}`),
      el("span", { class: "soft address", dir: "ltr" }, one.address),
      el("span", { class: `state-${one.state}` }, STATES[one.state] || one.state, one.synced ? el("span", { class: "soft" }, ` · ${dateText(new Date(one.synced * 1000).toISOString())}`) : null, el("span", { class: "soft" }, ` · ${when}`)),
      mine ? el("span", { class: "end" }, sync, remove) : null,
      one.message ? el("span", { class: "soft why", dir: "auto" }, one.message) : null);
  }

  /** Do something, say how it ended, and read the list again. */
  async function doing(work) {
    status.textContent = "";
    try {
      status.textContent = (await work()) || "";
    } catch (error) {
      if (error.name === "AbortError") return;
      status.textContent = errorText(error);
    }
    await refresh();
  }

  const add = () => doing(async () => {
    const acl = readers.value.split(",").map((one) => one.trim()).filter(Boolean);
    await app.api.post("/api/v1/sources", { name: name.value.trim(), address: address.value.trim(), collection: target() || "default", every: Number(every.value), acl });
    form.reset();
    return "Added. It is read at its time, or now by “Sync now”.";
  });

  const run = (one, button) => doing(async () => {
    button.disabled = true;
    status.textContent = `Reading ${one.name}…`;
    const job = await app.api.post(`/api/v1/sources/${encodeURIComponent(one.name)}/sync`);
    const ended = await follow(app.api, job, (now) => { status.textContent = `Reading ${one.name}: ${now.done.toLocaleString()} ${now.stage || ""}`; }, gone.signal);
    done(one.collection);
    return ended.state === "done" ? `${one.name} is in sync.` : `${one.name}: ${ended.error || ended.state}`;
  });

  const drop = (one) => doing(async () => {
    const forget = el("input", { type: "checkbox" });
    const agreed = await confirmed({
      heading: `Remove the source “${one.name}”?`,
      text: el("span", null, "It is no longer kept in sync; its documents stay. ", el("label", null, forget, " Delete its documents too; they cannot be brought back.")),
      action: "Remove",
    });
    if (!agreed) return "";
    await app.api.del(`/api/v1/sources/${encodeURIComponent(one.name)}`, { documents: forget.checked });
    if (forget.checked) done(one.collection);
    return `Removed: ${one.name}`;
  });

  return { node: panel, leave: () => gone.abort() };
}
