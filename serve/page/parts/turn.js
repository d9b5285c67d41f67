// One question and what became of it: its steps while it runs, then the answer and how it came about.

import { ApiError, errorText } from "../api.js";
import { count, el, fill } from "../dom.js";
import { answerNodes, languageOf } from "./answer.js";
import { clarified, clarifyBox } from "./clarify.js";
import { drawing, visit } from "./drawing.js";
import { feedbackBar } from "./feedback.js";
import { howPanel } from "./how.js";
import { numbers } from "./cites.js";
import { msText, placeText, stopText } from "./words.js";
import { stepLine } from "./trail.js";

/** Make a turn: `run(body)` asks, `show(result, trail)` shows what was asked before.
 *  `reply(text)` is called when a clarifying question is answered, `change(text)` to ask otherwise. */
export function makeTurn(app, question, { collection, reply, change = () => {} }) {
  const work = el("ol", { class: "steps", "aria-label": "Steps", hidden: true });
  const graph = el("div", { class: "live-path" });
  const out = el("div", { class: "reply" });
  const status = el("p", { class: "status", role: "status", "aria-live": "polite" });
  const node = el("article", { class: "turn" }, el("h2", { class: "question", dir: "auto" }, question), status, work, graph, out);
  const turn = { node, question, result: null, trail: [], collection, run, show, fail, change };

  function show(result, trail, asked = null) {
    turn.result = result;
    turn.trail = trail;
    status.textContent = "";
    work.hidden = true;
    fill(graph);
    const before = asked ? clarified(asked, asked.reply) : null;
    if (result.clarification) fill(out, clarifyBox(result.clarification, reply));
    else if (result.refused) fill(out, before, refusal(result), after(app, turn));
    else fill(out, before, answerNodes(app, result, turn.collection), notes(result), after(app, turn));
  }

  function fail(error, again) {
    status.textContent = "";
    out.querySelector(".answer")?.classList.add("draft");
    out.append(el("div", { class: "notice-box problem", role: "alert" }, el("p", null, errorText(error)),
      again ? el("button", { type: "button", onclick: again }, "Ask again") : null));
  }

  async function run(body, signal) {
    const live = liveView(app, { node, status, work, graph, out });
    try {
      for await (const event of app.api.stream("/api/v1/chat", body, signal)) {
        if (event.kind === "error") throw new ApiError(200, event.data);
        if (event.kind === "result") {
          show(event.data, live.trail);
          status.textContent = summary(event.data);
          return event.data;
        }
        live.take(event);
      }
      throw new Error("the answer broke off before its end");
    } finally {
      live.end();
    }
  }
  return turn;
}

/** Show steps and text as they come. */
function liveView(app, { node, status, work, graph, out }) {
  const answer = el("div", { class: "answer live", dir: "auto", "aria-live": "polite" });
  const draft = el("div", { class: "answer draft", dir: "auto", hidden: true });
  const trail = [];
  let box = null;
  let provisional = false; // the draft is what the rules would answer
  let ended = false;
  status.textContent = "Waiting for its turn…";
  fill(work).hidden = false;
  node.classList.add("running");
  fill(out, answer, draft);
  drawing(app, "/api/v1/graph.svg", "The graph; visited nodes are highlighted").then((drawn) => {
    if (!drawn || ended) return;
    box = drawn;
    graph.append(drawn);
    trail.forEach((step, n) => visit(box, step.node, n ? trail[n - 1].node : "__start__"));
  }).catch(() => {});

  return {
    trail,
    take({ kind, data }) {
      if (kind === "step") {
        visit(box, data.node, trail.length ? trail.at(-1).node : "__start__");
        trail.push(data);
        work.append(stepLine(data));
        work.scrollTop = work.scrollHeight;
        status.textContent = `${data.name}: ${data.text}`;
      } else if (kind === "sentence") {
        draft.hidden = true;
        draft.textContent = "";
        answer.append(data.text.replace(/^\n/, answer.textContent ? "\n" : ""));
      } else if (kind === "rules") {
        draft.hidden = false;
        draft.textContent = data.text;
        draft.title = "Found by the rules; the model is still reading";
        provisional = true;
      } else if (kind === "token") {
        draft.hidden = false;
        if (provisional) draft.textContent = "";
        provisional = false;
        draft.append(data.text);
      }
    },
    end() {
      ended = true;
      node.classList.remove("running");
      fill(graph);
      draft.remove();
      answer.removeAttribute("aria-live");
    },
  };
}

function summary(result) {
  if (result.clarification) return "One thing has to be made clear first.";
  if (result.refused) return "No answer was found.";
  const sources = new Set(result.claims.flatMap((claim) => claim.citations.map((one) => one.chunk_id)));
  return `Answered from ${count(sources.size, "passage")} in ${msText(result.usage.ms)}.`;
}

/** An honest answer: nothing was found, what was looked for, and where. */
function refusal(result) {
  const [first, ...rest] = result.answer.split("\n");
  return el("section", { class: "refusal", lang: languageOf(result), dir: "auto" },
    el("p", { class: "refusal-first" }, first || stopText(result.stop_reason)),
    rest.filter(Boolean).map((line) => {
      const at = line.search(/[:：]/);
      return el("p", null, at > 0 ? [el("strong", null, line.slice(0, at + 1)), line.slice(at + 1)] : line);
    }));
}

function notes(result) {
  const lines = [...new Set([...(result.missing || []).map((text) => `not found: ${text}`), ...result.warnings])];
  return lines.length ? el("ul", { class: "notes" }, lines.map((line) => el("li", { dir: "auto" }, line))) : null;
}

/** Copy the question, the answer and its numbered sources as a text. */
function copyAnswer(app, { question, result }) {
  const number = numbers(result.claims);
  const cited = result.evidence.filter((one) => number.has(one.chunk_id)).sort((a, b) => number.get(a.chunk_id) - number.get(b.chunk_id));
  const lines = cited.map((one) => `[${number.get(one.chunk_id)}] ${[one.title || one.source, placeText(one)].filter(Boolean).join(" · ")}`);
  navigator.clipboard.writeText([question, "", result.answer, "", ...lines].join("\n").trim())
    .then(() => app.toast("Copied, with its sources."), () => app.toast("This browser does not let the page copy."));
}

function after(app, turn) {
  const { result } = turn;
  if (!result.usage.steps) return null; // what is kept of the run is not there yet, or no more
  return [
    el("div", { class: "row under-answer" },
      feedbackBar(app, result.run_id),
      el("button", { type: "button", class: "quiet", title: "Copy with its sources", onclick: () => copyAnswer(app, turn) }, "Copy"),
      el("button", { type: "button", class: "quiet", title: "Put the question into the box, to change it", onclick: () => turn.change(turn.question) }, "Ask differently"),
      el("span", { class: "soft" }, stopText(result.stop_reason))),
    howPanel(app, turn),
  ];
}
