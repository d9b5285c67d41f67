// One file on its way: sent with its progress, then ingested, which the server is asked about.

import { ApiError, session } from "../api.js";

const POLL = 500; // milliseconds between two questions, growing up to SLOW
const SLOW = 4000;
const ENDED = ["done", "failed", "cancelled"];

/** Send a file; `progress(share)` hears how much is there. Resolves to the job. */
export function sendFile(file, query, progress, signal) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/api/v1/documents?${params(query)}`);
    request.responseType = "json";
    request.setRequestHeader("Content-Type", "application/octet-stream");
    if (session.key) request.setRequestHeader("Authorization", `Bearer ${session.key}`);
    request.upload.addEventListener("progress", (event) => { if (event.lengthComputable) progress(event.loaded / event.total); });
    request.addEventListener("load", () => {
      if (request.status === 202) { resolve(request.response); return; }
      if (request.status === 401) session.lost();
      const error = new ApiError(request.status, request.response);
      error.after = Number(request.getResponseHeader("Retry-After")) || 0;
      reject(error);
    });
    request.addEventListener("error", () => reject(new Error("the connection was cut; the file may be larger than the server takes")));
    request.addEventListener("abort", () => reject(new DOMException("given up", "AbortError")));
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

function params(query) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) for (const one of [value].flat()) given.append(name, one);
  return given;
}

/** Send a file, waiting where the server asks for it. */
export async function sendPatiently(file, query, progress, signal, waiting) {
  for (;;) {
    try {
      return await sendFile(file, query, progress, signal);
    } catch (error) {
      if (![429, 503].includes(error.status) || !error.after) throw error;
      waiting();
      await pause(error.after * 1000, signal);
    }
  }
}

/** Ask about a job until it has ended; `changed(job)` hears of every answer. */
export async function follow(api, job, changed, signal) {
  let wait = POLL;
  let known = job;
  while (!ENDED.includes(known.state)) {
    await pause(wait, signal);
    wait = Math.min(SLOW, wait * 1.2);
    try {
      known = await api.get(`/api/v1/jobs/${job.id}`, null, { signal });
      changed(known);
    } catch (error) {
      if (![429, 503].includes(error.status)) throw error;
      wait = SLOW; // the server has enough to do
    }
  }
  return known;
}

/** Wait; rejects at once when the signal is given. */
export function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const given = () => { clearTimeout(timer); reject(new DOMException("given up", "AbortError")); };
    const timer = setTimeout(() => { signal.removeEventListener("abort", given); resolve(); }, milliseconds);
    if (signal.aborted) given();
    else signal.addEventListener("abort", given, { once: true });
  });
}

const STAGES = { files: "reading", chunks: "indexing", vectors: "indexing", second: "indexing", index: "indexing", tree: "building the tree" };

/** Say in words how far a job is. */
export function jobText(job) {
  if (job.state === "waiting") return "waiting for its turn";
  if (job.state === "running") return STAGES[job.stage] || "reading";
  if (job.state === "failed") return job.error;
  if (job.state === "cancelled") return "cancelled";
  if (job.kind !== "upload") return { deletion: "deleted", sync: "in sync" }[job.kind] || "built";
  return [`${job.chunks.toLocaleString()} ${job.chunks === 1 ? "passage" : "passages"}`, ...job.notes].join(" · ");
}

/** Return the share of a job that is done, null when that is not known. */
export function jobShare(job) {
  return job.state === "running" && job.total ? job.done / job.total : null;
}

