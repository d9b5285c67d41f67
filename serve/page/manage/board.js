// The files on their way. They go on while other views are shown, and end when the person signs out.

import { errorText, session } from "../api.js";
import { el } from "../dom.js";
import { bytesText } from "./sizes.js";
import { follow, jobShare, jobText, sendPatiently } from "./sending.js";

let board = null;

/** Return the board of who is signed in; it is rebuilt for somebody else. */
export function uploadBoard(app) {
  if (!board || board.key !== session.key) {
    if (board) board.stop();
    board = new Board(app);
  }
  return board;
}

class Board {
  constructor({ api, me }) {
    this.api = api;
    this.key = session.key;
    this.most = me.upload_bytes ?? Infinity;
    this.list = el("ul", { class: "plain upload-list" });
    this.done = () => {}; // the view that is shown hears of what is in
    this.queue = [];
    this.known = new Set();
    this.gone = new AbortController();
    this.sending = false;
    addEventListener("beforeunload", (event) => { if (this.sending) event.preventDefault(); }, { signal: this.gone.signal });
  }

  stop() {
    this.queue = [];
    this.gone.abort();
  }

  /** Take {name, file} pairs; `query` says where they go and who may read them. One with `error` is listed alone. */
  take(files, query) {
    for (const { name, file, error } of files) {
      const entry = entryNode(name, [file && bytesText(file.size), query.collection].filter(Boolean).join(" · "));
      this.list.prepend(entry.node);
      if (error) {
        entry.end("failed", error);
        continue;
      }
      if (file.size > this.most) {
        entry.end("failed", `a document has at most ${bytesText(this.most)} here`);
        continue;
      }
      this.queue.push({ file, query: { ...query, name }, entry });
    }
    this.work();
  }

  async work() {
    if (this.sending) return;
    this.sending = true;
    while (this.queue.length) await this.one(this.queue.shift());
    this.sending = false;
  }

  /** Send one file; its ingest is followed while the next is sent. */
  async one({ file, query, entry }) {
    const own = new AbortController();
    const stop = () => own.abort();
    this.gone.signal.addEventListener("abort", stop);
    entry.cancel(stop);
    try {
      if (session.key !== this.key) throw new DOMException("signed out", "AbortError");
      entry.say("sending", 0);
      const job = await sendPatiently(file, query, (share) => entry.say("sending", share), own.signal, () => entry.say("waiting for a place", null));
      this.ingest(job, entry);
    } catch (error) {
      entry.end(error.name === "AbortError" ? "cancelled" : "failed", error.name === "AbortError" ? "not sent" : errorText(error));
    } finally {
      this.gone.signal.removeEventListener("abort", stop);
    }
  }

  async ingest(job, entry) {
    this.known.add(job.id);
    entry.cancel(() => this.api.del(`/api/v1/jobs/${job.id}`).catch((error) => entry.say(errorText(error), null)));
    entry.say(jobText(job), jobShare(job));
    try {
      const ended = await follow(this.api, job, (now) => entry.say(jobText(now), jobShare(now)), this.gone.signal);
      entry.end(ended.state, jobText(ended));
      if (ended.state === "done") this.done(ended.collection);
    } catch (error) {
      if (error.name !== "AbortError") entry.end("failed", errorText(error));
    }
  }

  /** Show what is still at work from before the page was opened. */
  async resume() {
    const { jobs } = await this.api.get("/api/v1/jobs", { limit: 50 }, { signal: this.gone.signal });
    for (const job of jobs) {
      if (job.kind !== "upload" || !["waiting", "running"].includes(job.state) || this.known.has(job.id)) continue;
      const entry = entryNode(job.name, `${bytesText(job.bytes)} · ${job.collection}`);
      this.list.append(entry.node);
      this.ingest(job, entry);
    }
  }
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
      const said = { done: "Ready", cancelled: "Cancelled", failed: "Failed" }[state];
      node.classList.add(state);
      bar.remove();
      button.remove();
      status.textContent = `${said}: ${text}`;
    },
  };
}
