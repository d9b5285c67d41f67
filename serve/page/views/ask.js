// Questions and their answers, as a conversation that goes on.

import { errorText } from "../api.js";
import { count, el, fill } from "../dom.js";
import { closeClarifying } from "../parts/clarify.js";
import { makeComposer } from "../parts/composer.js";
import { drawTalks, talks } from "../parts/talks.js";
import { makeTurn } from "../parts/turn.js";

export const title = "Ask";

/** Show a new conversation, the one of #/chat/ID, or the one run of #/run/ID. */
export async function mount(root, app, params) {
  const { collections } = await app.api.get("/api/v1/collections");
  const thread = el("div", { class: "thread" });
  const side = el("div", { class: "side-list" });
  const composer = makeComposer(collections, { send: ask, stop });
  const state = { turns: [], talk: "", keeps: true, running: null, asked: [] };
  fill(root, sidePanel(app, side), el("section", { class: "talk", "aria-label": "Conversation" }, el("h1", { class: "sr" }, "Ask your documents"), thread, composer.node));
  composer.choose(kept() || (collections[0] || {}).name);

  const refresh = () => drawTalks(app, side, state.talk || params.id, gone).then((keeps) => {
    state.keeps = keeps;
    composer.offerClarifying(keeps);
  }, (error) => fill(side, el("p", { class: "hint" }, errorText(error))));

  function gone(id) {
    if (id === state.talk) app.go("#/ask");
  }

  function addTurn(question, collection) {
    thread.querySelector(".welcome")?.remove();
    const turn = makeTurn(app, question, { collection, reply: ask, change: composer.write });
    state.turns.push(turn);
    thread.append(turn.node);
    return turn;
  }

  async function ask(question) {
    if (state.running) return;
    closeClarifying(thread); // whatever is asked next is the reply
    const turn = addTurn(question, composer.collection);
    state.running = new AbortController();
    composer.running(true);
    if (state.turns.length > 1) turn.node.scrollIntoView({ block: "start" });
    try {
      const result = await turn.run(await bodyOf(question), state.running.signal);
      state.asked.push({ question, answer: result.answer });
    } catch (error) {
      if (error.name === "AbortError") turn.fail(new Error("You stopped this question."), () => again(turn));
      else turn.fail(error, () => again(turn));
    } finally {
      state.running = null;
      composer.running(false);
      if (root.isConnected) refresh();
    }
  }

  function again(turn) {
    turn.node.remove();
    state.turns = state.turns.filter((one) => one !== turn);
    ask(turn.question);
  }

  /** A server that keeps conversations knows what was said before; another is told. */
  async function bodyOf(question) {
    const body = { question, pipeline: composer.pipeline, where: composer.where, stream: true };
    if (!state.talk && state.keeps && !state.asked.length) {
      const begun = await talks.begin(app, composer.collection);
      if (begun) {
        state.talk = begun.conversation_id;
        composer.fix(true);
        history.replaceState(null, "", `#/chat/${state.talk}`);
      } else state.keeps = false;
    }
    if (state.talk) return { ...body, conversation_id: state.talk, clarify: composer.clarify };
    const messages = state.asked.flatMap(({ question: text, answer }) => [{ role: "user", content: text }, { role: "assistant", content: answer }]);
    return { ...body, collection: composer.collection, messages: messages.slice(-100) };
  }

  function stop() {
    if (state.running) state.running.abort();
  }

  composer.node.hidden = true; // nothing is asked before what was said is there
  refresh();
  if (params.place === "chat" && params.id) await openTalk(params.id);
  else if (params.place === "run" && params.id) await openRun(params.id);
  else fill(thread, welcome(app, collections, composer, ask));
  composer.node.hidden = composer.node.dataset.closed === "yes";
  composer.focus();
  return stop;

  async function openTalk(id) {
    const talk = await talks.load(app, id);
    const isOwn = talk.user === app.me.user;
    if (isOwn) state.talk = id;
    else thread.append(el("p", { class: "hint" }, `${talk.user} shares this with you. You see the answers whose sources you may read.`));
    composer.choose(talk.collection);
    composer.fix(isOwn);
    composer.node.dataset.closed = isOwn ? "" : "yes";
    for (const one of talk.turns) {
      const turn = addTurn(one.question, talk.collection);
      if (one === talk.turns.at(-1) && talk.waiting) turn.show({ clarification: talk.waiting }, []);
      else showKept(turn, one);
    }
    thread.lastElementChild?.scrollIntoView({ block: "start" });
  }

  /** The turns of a conversation name their runs, which hold the evidence: read when they are seen. */
  function showKept(turn, one) {
    const asked = one.clarification && { ...one.clarification, reply: one.reply || "" };
    turn.show(withoutEvidence(one), [], asked);
    const seen = new IntersectionObserver(async ([entry]) => {
      if (!entry.isIntersecting) return;
      seen.disconnect();
      const run = await app.api.get(`/api/v1/runs/${encodeURIComponent(one.run_id)}`).catch(() => null);
      if (!run) return; // the answer stays
      turn.collection = run.collection;
      turn.show(run.result, run.trail, asked);
    });
    seen.observe(turn.node);
  }

  async function openRun(id) {
    const run = await app.api.get(`/api/v1/runs/${encodeURIComponent(id)}`);
    composer.choose(run.collection);
    addTurn(run.question, run.collection).show(run.result, run.trail);
    state.asked.push({ question: run.question, answer: run.result.answer });
  }
}

function withoutEvidence({ run_id, answer, refused, stop_reason }) {
  return { run_id, answer, refused, stop_reason, claims: [], evidence: [], usage: {}, missing: [], warnings: [] };
}

function kept() {
  try { return localStorage.getItem("carrel.collection"); } catch { return ""; }
}

function sidePanel(app, list) {
  const again = el("button", { type: "button", class: "new-talk", onclick: () => app.go("#/ask") }, "New conversation");
  const box = el("details", { class: "side-box", open: matchMedia("(min-width: 56rem)").matches }, el("summary", null, "Conversations"), list);
  return el("aside", { class: "side", "aria-label": "Conversations" }, again, box);
}

/** Offer questions about the documents of the collection chosen; each is asked by a click. */
function offers(app, ask) {
  const list = el("ul", { class: "plain offers" });
  let asked = "";
  return { list, async show(collection) {
    asked = collection;
    const { questions } = await app.api.get("/api/v1/examples", { collection }).catch(() => ({ questions: [] }));
    if (asked === collection) fill(list, questions.map((one) => el("li", null, el("button", { type: "button", class: "link", dir: "auto", onclick: () => ask(one) }, one))));
  } };
}

function welcome(app, collections, composer, ask) {
  if (!collections.length) {
    return el("div", { class: "welcome" }, el("h2", null, "There is nothing to read yet"),
      el("p", null, "Add documents under ", el("a", { href: "#/documents" }, "Documents"), ", or with “carrel ingest”."));
  }
  const offered = offers(app, ask);
  const shown = collections.find((one) => one.name === composer.collection) || collections[0];
  offered.show(shown.name);
  return el("div", { class: "welcome" },
    el("h2", null, "What would you like to know?"),
    el("p", { class: "soft" }, "Every sentence of an answer cites the passage it rests on. Where your documents do not say, you are told so."),
    el("div", { class: "shelves", role: "group", "aria-label": "Collections" }, collections.map((one) =>
      el("button", { type: "button", class: "shelf", "aria-pressed": String(one === shown), onclick: (event) => {
        for (const shelf of event.currentTarget.parentNode.children) shelf.setAttribute("aria-pressed", String(shelf === event.currentTarget));
        composer.choose(one.name);
        offered.show(one.name);
        composer.focus();
      } },
        el("strong", { dir: "auto" }, one.name), el("span", { class: "soft" }, count(one.documents, "document"))))),
    offered.list);
}
