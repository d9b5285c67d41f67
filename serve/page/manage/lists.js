// Lists for admins: jobs, feedback, and the audit log.

import { errorText } from "../api.js";
import { dateText, el, fill, saveFile } from "../dom.js";
import { jobShare, jobText } from "./sending.js";
import { bytesText } from "./sizes.js";

const POLL = 3000;

function grid(label, names, body) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, el("table", null,
    el("thead", null, el("tr", null, names.map((name) => el("th", { scope: "col" }, name)))), body));
}

/** Show the jobs of the tenant, again and again. */
export async function jobsSection(root, app) {
  const body = el("tbody");
  const status = el("p", { class: "hint", role: "status" });
  const table = grid("Jobs", ["Name", "Kind", "User", "Collection", "Size", "State", "What", "Begun"], body);
  fill(root, status, table);
  let timer = null;
  let over = false;

  async function look() {
    try {
      const { jobs } = await app.api.get("/api/v1/jobs", { all: true, limit: 200 });
      if (over || !root.isConnected) return;
      status.textContent = jobs.length ? "" : "Nothing has been uploaded or deleted yet.";
      table.hidden = !jobs.length;
      fill(body, jobs.map(jobRow));
    } catch (error) {
      status.textContent = errorText(error);
    }
    if (!over && root.isConnected) timer = setTimeout(look, POLL);
  }

  await look();
  return () => { over = true; clearTimeout(timer); };
}

function jobRow(job) {
  const share = jobShare(job);
  const percent = share === null ? "" : ` ${Math.round(share * 100)} %`;
  return el("tr", null, el("th", { scope: "row", dir: "auto" }, job.name || "—"), el("td", null, job.kind), el("td", null, job.user), el("td", null, job.collection),
    el("td", { class: "number" }, job.kind === "upload" ? bytesText(job.bytes) : ""), el("td", { class: `state-${job.state}` }, job.state),
    el("td", { dir: "auto" }, jobText(job), percent), el("td", { class: "date" }, dateText(job.created_at)));
}

/** Show how much of what was recommended is looked at and used. */
export async function adoptionSection(root, app) {
  const found = await app.api.get("/api/v1/recommend/figures");
  const share = (value) => (value === null ? "–" : `${(100 * value).toFixed(1)} %`);
  const { evaluation } = found;
  const bounds = evaluation && evaluation.interval ? ` (${evaluation.interval.map((one) => one.toFixed(2)).join(" to ")})` : "";
  const facts = [
    ["Users", found.users], ["Recommended", found.listed], ["Looked at", found.viewed], ["Liked", found.liked], ["In use", found.adopted],
    ["Click-through", share(found.click_through)], ["Adoption", share(found.adoption)],
    ["Likes foretold (AUC)", evaluation && evaluation.auc !== null ? `${evaluation.auc.toFixed(2)}${bounds}` : "–"],
  ];
  fill(root, el("dl", { class: "tiles" }, facts.map(([name, value]) => el("div", { class: "tile" }, el("dt", null, name), el("dd", null, String(value))))),
    el("p", { class: "hint" }, "Each document counts once for each user. Daily, each like is left out and looked for by its user’s others: .5 is chance."));
}

/** Show what readers thought of their answers, and let it be saved. */
export async function feedbackSection(root, app) {
  const { feedback } = await app.api.get("/api/v1/feedback");
  const body = el("tbody", null, feedback.map((one) => el("tr", null,
    el("th", { scope: "row" }, one.rating === "up" ? "good" : "bad"), el("td", { dir: "auto" }, one.question || ""), el("td", { dir: "auto" }, one.comment),
    el("td", null, one.user || ""), el("td", null, el("code", null, one.run_id)), el("td", { class: "date" }, dateText(one.created_at)))));
  const save = el("button", { type: "button", disabled: !feedback.length, onclick: () => saved(app) }, "Save as JSON Lines");
  fill(root, el("p", null, save),
    feedback.length ? grid("Feedback", ["Answer", "Question", "Comment", "User", "Run", "When"], body) : el("p", { class: "hint" }, "Nobody has rated an answer yet."));
}

async function saved(app) {
  try {
    const text = await app.api.text("/api/v1/feedback", { format: "jsonl" });
    saveFile("feedback.jsonl", "application/x-ndjson", text);
  } catch (error) {
    app.toast(errorText(error));
  }
}

const KINDS = ["login", "login_failed", "retrieval", "answer", "upload", "deletion", "access_changed", "key_created", "key_revoked", "settings"];

/** Show who did what, as far as this server keeps it, the newest first. */
export async function auditSection(root, app) {
  const kind = el("select", { id: "audit-kind", onchange: () => show(0) },
    el("option", { value: "" }, "everything"), KINDS.map((one) => el("option", { value: one }, one.replaceAll("_", " "))));
  const status = el("p", { class: "hint", role: "status" });
  const body = el("tbody");
  const table = grid("Audit log", ["When", "What", "User", "Facts"], body);
  const earlier = el("button", { type: "button" }, "Earlier");
  const choose = el("p", null, el("label", { for: "audit-kind" }, "Show "), kind);
  fill(root, choose, status, table, el("p", { class: "row pager" }, earlier));
  await show(0);

  /** Show what is before a row, 0 for the newest. */
  async function show(before) {
    let answer;
    try {
      answer = await app.api.get("/api/v1/audit", { before: before || null, kind: kind.value });
    } catch (error) {
      status.textContent = error.status === 404 ? "This server keeps no audit log." : errorText(error);
      choose.hidden = table.hidden = earlier.hidden = true;
      return;
    }
    const rows = answer.events.map(auditRow);
    if (before) body.append(...rows);
    else fill(body, rows);
    status.textContent = body.children.length ? "" : "Nothing is written of this.";
    table.hidden = !body.children.length;
    earlier.hidden = !answer.next;
    earlier.onclick = () => show(answer.next);
  }
}

function auditRow(one) {
  return el("tr", null, el("td", { class: "date" }, dateText(one.at)), el("th", { scope: "row" }, one.kind.replaceAll("_", " ")),
    el("td", null, one.user), el("td", { class: "soft", dir: "auto" }, factsText(one.facts)));
}

function factsText(facts) {
  const said = Object.entries(facts).filter(([, value]) => value !== "" && value !== null && !(Array.isArray(value) && !value.length));
  return said.map(([name, value]) => `${name.replaceAll("_", " ")}: ${Array.isArray(value) ? value.join(", ") : typeof value === "object" ? JSON.stringify(value) : value}`).join(" · ");
}
