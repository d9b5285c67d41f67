// The panel that takes files: by a button, or dropped on it.

import { errorText } from "../api.js";
import { el, fill, freshId } from "../dom.js";
import { bytesText } from "./sizes.js";
import { follow, jobShare, jobText, sendPatiently } from "./sending.js";

const OTHER = "\u0000other"; // no role is named so

/** Return the panel. `target()` is the collection shown; `done(collection)` is called when a file is in. */
export function uploadPanel(app, { target, collections, done }) {
  const gone = new AbortController();
  const queue = [];
  let sending = false;
  const list = el("ul", { class: "plain upload-list" });
  const picker = el("input", { type: "file", multiple: true, class: "sr", id: freshId("files"), onchange: () => { take(picker.files); picker.value = ""; } });
  const into = collectionField(collections, target);
  const readers = readersField(app.me);
  const zone = el("div", { class: "dropzone" },
    el("p", null, el("label", { class: "button", for: picker.id }, "Choose files"), picker, el("span", { class: "soft" }, " or drop them here")),
    el("div", { class: "row upload-options" }, into.node, readers.node),
    list);

  let inside = 0;
  zone.addEventListener("dragenter", (event) => { event.preventDefault(); inside += 1; zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => { inside -= 1; if (inside <= 0) zone.classList.remove("over"); });
  zone.addEventListener("dragover", (event) => event.preventDefault());
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    inside = 0;
    zone.classList.remove("over");
    take(event.dataTransfer.files);
  });

  function take(files) {
    const query = { collection: into.value(), role: readers.value() };
    for (const file of files) {
      const entry = entryNode(file.name, `${bytesText(file.size)} · ${query.collection}`);
      list.prepend(entry.node);
      queue.push({ file, query: { ...query, name: file.name }, entry });
    }
    work();
  }

  async function work() {
    if (sending) return;
    sending = true;
    while (queue.length && !gone.signal.aborted) await one(queue.shift());
    sending = false;
  }

  /** Send one file; its ingest is followed while the next is sent. */
  async function one({ file, query, entry }) {
    const own = new AbortController();
    const stop = () => own.abort();
    gone.signal.addEventListener("abort", stop);
    entry.cancel(stop);
    try {
      entry.say("sending", 0);
      const job = await sendPatiently(file, query, (share) => entry.say("sending", share), own.signal, () => entry.say("waiting for a place", null));
      entry.cancel(() => app.api.del(`/api/v1/jobs/${job.id}`).catch((error) => app.toast(errorText(error))));
      ingest(job, entry);
    } catch (error) {
      entry.end(error.name === "AbortError" ? "cancelled" : "failed", error.name === "AbortError" ? "not sent" : errorText(error));
    } finally {
      gone.signal.removeEventListener("abort", stop);
    }
  }

  async function ingest(job, entry) {
    entry.say(jobText(job), null);
    try {
      const ended = await follow(app.api, job, (now) => entry.say(jobText(now), jobShare(now)), gone.signal);
      entry.end(ended.state, jobText(ended));
      if (ended.state === "done") done(ended.collection);
    } catch (error) {
      if (error.name !== "AbortError") entry.end("failed", errorText(error));
    }
  }

  /** Show what is still at work from before. */
  async function resume() {
    const { jobs } = await app.api.get("/api/v1/jobs", { limit: 50 }, { signal: gone.signal });
    for (const job of jobs.filter((one) => one.kind === "upload" && ["waiting", "running"].includes(one.state))) {
      const entry = entryNode(job.name, `${bytesText(job.bytes)} · ${job.collection}`);
      list.append(entry.node);
      entry.cancel(() => app.api.del(`/api/v1/jobs/${job.id}`).catch((error) => app.toast(errorText(error))));
      ingest(job, entry);
    }
  }

  resume().catch(() => {}); // the list of documents says what is wrong
  return { node: zone, leave: () => gone.abort(), known: into.known };
}

function entryNode(name, facts) {
  const bar = el("progress", { max: 1, "aria-label": `Progress of ${name}` });
  const status = el("span", { class: "upload-status", role: "status" });
  const button = el("button", { type: "button", class: "quiet", "aria-label": `Cancel ${name}` }, "Cancel");
  const node = el("li", { class: "upload" },
    el("span", { class: "upload-name", dir: "auto" }, name), el("span", { class: "soft upload-facts" }, facts), bar, status, button);
  let stop = () => {};
  button.addEventListener("click", () => stop());
  return {
    node,
    cancel: (action) => { stop = action; },
    say(text, share) {
      if (status.textContent !== text) status.textContent = text;
      if (share === null) bar.removeAttribute("value");
      else bar.value = share;
    },
    end(state, text) {
      node.classList.add(state);
      bar.remove();
      button.remove();
      status.textContent = state === "done" ? `Ready: ${text}` : state === "cancelled" ? `Cancelled: ${text}` : `Failed: ${text}`;
    },
  };
}

function collectionField(collections, target) {
  const id = freshId("into");
  const options = el("datalist", { id: `${id}-known` });
  const field = el("input", { id, list: `${id}-known`, maxlength: 64, spellcheck: "false", autocomplete: "off", placeholder: "default", size: 18 });
  const known = (names) => fill(options, names.map((name) => el("option", { value: name })));
  known(collections);
  return {
    node: el("span", null, el("label", { for: id }, "Into collection "), field, options),
    known(names) { known(names); field.placeholder = target() || "default"; },
    value: () => field.value.trim() || target() || "default",
  };
}

function readersField(me) {
  const id = freshId("readers");
  const other = el("input", { class: "other-role", maxlength: 64, spellcheck: "false", "aria-label": "Name of the role", placeholder: "role", size: 12, hidden: true });
  const choose = el("select", { id, onchange: () => { other.hidden = choose.value !== OTHER; if (!other.hidden) other.focus(); } },
    el("option", { value: "" }, `Everyone in ${me.tenant}`),
    me.roles.map((role) => el("option", { value: role }, `Role ${role}`)),
    el("option", { value: OTHER }, "Another role…"));
  return {
    node: el("span", null, el("label", { for: id }, "Read by "), choose, " ", other),
    value: () => [choose.value === OTHER ? other.value.trim() : choose.value].filter(Boolean),
  };
}
