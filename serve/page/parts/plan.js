// The plan of a run: what was asked, what it waited for, and which values were found.

import { el } from "../dom.js";
import { drawing } from "./drawing.js";
import { openSource } from "./source.js";

/** Return the plan's drawing, its questions and the values found on the way. */
export async function planPanel(app, result, collection) {
  const plan = result.plan || {};
  const drawn = await drawing(app, `/api/v1/runs/${encodeURIComponent(result.run_id)}/plan.svg`, "The plan of this run");
  const asked = new Map((plan.asked || []).map((one) => [one.id, one.text]));
  const missing = new Set(result.missing || []);
  const questions = (plan.questions || []).map((one) => el("li", null,
    el("span", { dir: "auto" }, asked.get(one.id) || one.text),
    el("span", { class: "under" }, [
      one.id, one.deps.length ? `after ${one.deps.join(", ")}` : "", one.slot ? `finds {${one.slot}}` : "",
      missing.has(asked.get(one.id) || one.text) ? "not found" : "",
    ].filter(Boolean).join(" · "))));
  return [
    drawn,
    questions.length ? el("ol", { class: "asked" }, questions) : el("p", { class: "soft" }, "There was no plan."),
    values(app, result, collection),
    turns(plan),
  ];
}

function values(app, result, collection) {
  const slots = (result.plan || {}).slots || [];
  if (!slots.length) return null;
  return [
    el("h3", null, "Values found on the way"),
    el("ul", { class: "plain values" }, slots.map((one) => {
      const item = result.evidence.find((other) => other.evidence_id === one.evidence_id);
      const spans = one.field === "text" ? [{ start: one.start, end: one.end, quote: "" }] : [];
      const open = (event) => openSource(app, { collection, index: 0, cites: [{ number: 0, spans, evidence: item, button: event.currentTarget }] });
      return el("li", null, el("code", null, `{${one.slot}}`), " = ",
        item ? el("button", { type: "button", class: "link", dir: "auto", onclick: open }, one.value) : one.value);
    })),
  ];
}

function turns(plan) {
  const parts = [];
  if (plan.replans) parts.push(`planned again ${plan.replans} ×`);
  if (plan.backtracks) parts.push(`went back ${plan.backtracks} ×`);
  return parts.length ? el("p", { class: "soft" }, parts.join(", ")) : null;
}
