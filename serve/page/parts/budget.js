// What a run spent, beside what it might have.

import { bar, el } from "../dom.js";
import { msText, stopText } from "./words.js";

const NAMES = [["steps", "Steps"], ["tool_calls", "Tool calls"], ["tokens", "Tokens"], ["seconds", "Time"], ["cost", "Cost"]];

/** Return a bar for each limit, and why the run ended. */
export function budgetPanel(app, result) {
  const usage = result.usage;
  const limits = app.me.limits || {};
  const used = { ...usage, seconds: usage.ms / 1000 };
  const text = (name, value) => (name === "seconds" ? msText(value * 1000) : value.toLocaleString());
  const rows = NAMES.filter(([name]) => used[name] !== undefined && (name !== "cost" || used.cost)).map(([name, label]) => el("tr", null,
    el("th", { scope: "row" }, label),
    el("td", null, bar(limits[name] ? used[name] / limits[name] : 0, limits[name] ? `${text(name, used[name])} of ${text(name, limits[name])}` : text(name, used[name])))));
  const model = usage.model_calls ? `${usage.model_calls} calls of the model with ${usage.model_tokens.toLocaleString()} tokens` : "No call of a model";
  return [
    el("p", null, el("strong", null, "Stopped because: "), stopText(result.stop_reason).toLowerCase(), "."),
    el("table", { class: "budget" }, el("tbody", null, rows)),
    el("p", { class: "soft" }, model, usage.degraded ? `; ${usage.degraded} decisions were made by the rules instead` : "", "."),
  ];
}
