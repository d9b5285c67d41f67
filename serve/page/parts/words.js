// What the parts of a run are called on the page.

const NODES = {
  understand: "Reads the question",
  plan: "Plans",
  retrieve: "Searches",
  extract: "Takes a value",
  compose_query: "Completes a question",
  merge_hits: "Joins what was found",
  grade_documents: "Grades passages",
  stop_condition: "Decides what next",
  rewrite: "Rewrites the search",
  generate: "Writes the answer",
  verify: "Checks every sentence",
  refuse: "Declines",
  clarify: "Asks back",
  choose_action: "Chooses what to do",
  keyword_search: "Searches by words",
  semantic_search: "Searches by meaning",
  read_memory: "Reads what it remembers",
  final_answer: "Ends with an answer",
};

const OUTCOMES = { next: "goes on", enough: "enough", weak: "too weak, searches again", never: "nothing left to try" };

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
export const nodeName = (node) => NODES[node] || spaced(node);
export const stopText = (reason) => STOPS[reason] || spaced(reason || "");
export const channelName = (name) => CHANNELS[name] || spaced(name);
export const toolName = (tool) => spaced(tool || "");

function spaced(text) {
  return String(text).replaceAll("_", " ");
}

/** Say what a step did, in one line. */
export function stepText(step) {
  if (step.node === "retrieve" && step.tool) {
    const query = (step.arguments || {}).query;
    return `${toolName(step.tool)}: ${step.decision}${query ? ` for “${query}”` : ""}`;
  }
  const said = { plan: step.decision.split(";")[0], understand: step.reason ? "" : step.decision, stop_condition: OUTCOMES[step.decision], refuse: stopText(step.decision) };
  const reason = step.node === "stop_condition" ? step.reason.replace(/^[a-z_]+: /, "") : step.reason;
  return [said[step.node] ?? step.decision, reason].filter(Boolean).join(" – ");
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
