// What the parts of a run are called on the page.

const STOPS = {
  enough_evidence: "Enough evidence was found",
  required_fields_missing: "A part of the question found no answer",
  no_relevant_evidence: "No passage is relevant enough",
  max_steps: "The limit of steps was reached",
  max_tool_calls: "The limit of tool calls was reached",
  max_tokens: "The limit of tokens was reached",
  max_cost: "The limit of cost was reached",
  timeout: "The time limit was reached",
  policy: "A rule of the server ended it",
  unsupported_answer: "No sentence passed the check against its source",
  cancelled: "It was cancelled",
  clarification_needed: "One thing has to be made clear first",
  nothing_asked: "Nothing was asked",
};

const CHANNELS = {
  text: "Words", vector: "Meaning", sentence: "Best sentence", factors: "Adjustments",
  rerank: "Reranker", links: "Links", fused: "Fused",
};

export const GRADES = ["off topic", "related", "partly answers", "answers"];
export const stopText = (reason) => STOPS[reason] || spaced(reason || "");
export const channelName = (name) => CHANNELS[name] || spaced(name.replace(/^factors: /, "Adjusted for "));
export const toolName = (tool) => spaced(tool || "");

function spaced(text) {
  return String(text).replaceAll("_", " ");
}

/** Return "412 ms" or "3.2 s". */
export function msText(ms) {
  if (!(ms >= 0)) return "";
  return ms < 1000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** Say the page of a passage, unless its section names it as a slide. */
export function pageText(item, word = "page") {
  return item.page && !`${item.section} `.startsWith(`Slide ${item.page} `) ? `${word} ${item.page}` : "";
}

/** Say where a passage stands: section and page. */
export function placeText(item, word = "p.") {
  return [item.section, pageText(item, word)].filter(Boolean).join(" · ");
}
