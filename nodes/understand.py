"""Make the question stand alone and say what kind it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from core.budget import SEARCH_STEPS, Usage
from core.language.analysis import analyze
from core.language.detect import detect_language
from core.language.identifiers import Snippet, is_identifier, read_snippet
from core.language.scan import words_replaced
from core.recall import RecallState
from core.types import Plan, StopReason, Understanding
from graph.context import ONE_SEARCH, Context
from graph.reading import NOTED, STANDS_FOR
from graph.state import Path, State, Update
from reasoning.clarifying import answer_greeting, unclear
from reasoning.planning.compiler import ready
from reasoning.rendering import (
    render_forget,
    render_noted,
    render_nothing_to_keep,
    render_remark,
)
from reasoning.rules.answering.summaries import asked_summary
from reasoning.rules.follow_up import stand_alone
from reasoning.rules.lexicon import lexicon
from reasoning.rules.recall import asks_memory
from reasoning.statements import asks_to_forget, asks_to_keep, is_remark, question_beside
from reasoning.types import Turn, recent

MOST_LOOKED_UP = 40  # words of code and errors; chosen, not measured
MOST_NAMES = 4  # of the code in a question that are searched for; chosen, not measured
PUNCTUATION = " .,:;()[]{}'\"`"


def understand(state: State, runtime: Runtime[Context]) -> Update:
    """Read the question and the history; a chat's last message is the question.

    Where that is the reply to a clarifying question the run goes on, with what it has spent.
    """
    context = runtime.context
    messages = state.get("messages") or []
    goes_on = bool(messages) and STANDS_FOR in messages[-1].additional_kwargs
    before = state["usage"] if goes_on else Usage()
    trail = state["trail"] if goes_on else []
    began = context.clock()
    started = began - before.ms / 1000
    waiting, history = question_and_history(messages)
    question = asked_in(state, waiting)
    update = clear_earlier_run(state)
    clarified = state.get("clarified", 0) if goes_on else 0
    if state.get("clarified", 0) != clarified:
        update["clarified"] = clarified
    notes: list[str] = []
    with context.thinking({"started": started, "usage": before, "trail": trail}) as ledger:
        reply, asked, ends = _read_turn(question, context)
        if not (reply or ends):
            asked = stand_alone(asked, history)
        recall = None if reply else _recall(asked, context)
        may_ask = context.given is None and context.may_ask(clarified)
        may_ask = may_ask and not reply and not (recall and recall.first)
        asks = unclear(asked, recent(history, context.settings)) if may_ask else None
        history = _about_alike(asked, recall, history)
        query = _unknown(asked) if asks or ends else _understood(asked, history, context)
        path = _path(query, context)
        if asks is not None:
            update["clarification"], recall = asks, None
        elif (
            path == "plain" and not ends
        ):  # one question needs no planner: its tools are chosen here
            made, operations, notes = context.planned(query)
            wave = [operation.out for operation in ready(operations, [])]
            update |= {"plan": made, "operations": operations, "wave": wave}
    usage = context.spent(started, ledger)
    limit = context.budget.exceeded(before.plus(usage))
    if context.budget.steps_left(before.plus(usage)) < SEARCH_STEPS - (path == "plain"):
        limit = limit or StopReason.max_steps
    if ends:
        limit = StopReason.nothing_asked
    elif limit is not None:  # nothing can be searched
        update |= {"stop_reason": limit, "clarification": None}
        notes = [*notes, f"stopped early: {limit.value}"]
    values = _step_values(query, path, len(history), update.get("plan"))
    values["arguments"] |= context.budget.spent(limit, before.plus(usage))
    step = context.step("understand", began, ledger, **values)
    read = [f"“{typed}” is read as “{meant}”" for typed, meant in query.corrected.items()]
    warnings = [*ledger.warnings, *notes, *read]
    if question != waiting:  # the next turn's history needs it among the messages
        update["messages"] = [HumanMessage(question)]
    update["outcome"] = "next" if limit is None else "never"
    update |= {"recall": recall} if recall is not None else {}
    update |= {"reply": reply} if reply else {}
    update |= {"question": query.question, "started": started, "query": query, "path": path}
    reduced = {"usage": usage, "trail": [step], "warnings": warnings}
    if goes_on:
        return update | reduced
    return update | {
        key: Overwrite(value) if state.get(key) else value for key, value in reduced.items()
    }


def asked_in(state: State, waiting: str) -> str:
    """Return the question of a run: the state's own, or that of the messages, which waits."""
    asked, last = state.get("question") or waiting, state.get("query")
    if waiting and last is not None and asked == last.question:
        return waiting  # the other was left by the thread's last run
    return asked


def _understood(question: str, history: Sequence[Turn], context: Context) -> Understanding:
    """Read a question without its misspellings, so that it is graded by what it means."""
    snippet = read_snippet(question) if context.settings.is_documentation else None
    if snippet is not None:
        plain = _in_words(snippet, context)
        query = context.reasoner.understand(plain, history)
        return query.model_copy(update={"reason": f"{query.reason}; its code or error as: {plain}"})
    classic = context.pipeline in ONE_SEARCH or context.given is not None
    language = detect_language(question)
    found = {} if classic else context.tools.corrections(question, language, context.auth)
    asked = asked_summary(question, language)
    if asked is not None:  # "summarize" is no slip, whatever the documents write
        found = {typed: meant for typed, meant in found.items() if typed in asked.name}
    query = context.reasoner.understand(words_replaced(question, found), history)
    return query.model_copy(update={"corrected": found}) if found else query


def _in_words(snippet: Snippet, context: Context) -> str:
    """Return a question with what documents of the caller know of its code or error.

    What they have nowhere is of the asker's own program. A name of an error always counts.
    """
    language = detect_language(snippet.prose)
    message = dict.fromkeys(word.strip(PUNCTUATION) for word in snippet.message.split())
    asked = [
        one
        for one in dict.fromkeys((snippet.error, *message, *snippet.names))
        if any(not token.is_function for token in analyze(one, language))
    ]
    found = context.tools.visible_words(asked[:MOST_LOOKED_UP], language, context.auth)
    error = snippet.error if snippet.error in found else snippet.error.rsplit(".", 1)[-1]
    names = sorted((one for one in snippet.names if one in found), key=is_identifier, reverse=True)
    words = (error, *(one for one in message if one in found), *names[:MOST_NAMES])
    bare = snippet.prose.rstrip(PUNCTUATION + "?？")
    mark = snippet.prose[-1:] if snippet.prose.endswith(("?", "？")) else ""
    if error and not (mark or lexicon(language).found("question", bare)):
        bare = ""  # "It fails with": what the error says is asked about
    return " ".join(filter(None, (bare, *words))) + mark


def _read_turn(question: str, context: Context) -> tuple[str, str, bool]:
    """Return what to say where a turn asks nothing, what it asks, and whether no search is due.

    What only states something is looked for all the same: documents may know more of it.
    """
    language = detect_language(question)
    if context.given is not None:
        return "", question, False
    if context.noted is not None and not context.noted and asks_to_forget(question):
        return render_forget(language), question, True
    keeps = asks_to_keep(question)
    beside = "" if keeps else question_beside(question, context.noted or ())
    if context.noted and (not beside or answer_greeting(beside, language)):
        return render_noted(language, context.noted), question, keeps
    if context.noted:
        return "", beside, False
    reply = render_nothing_to_keep(language) if keeps else answer_greeting(question, language)
    if not reply and context.noted is not None and is_remark(question):
        return render_remark(language), question, False
    return reply, question, bool(reply)


def _recall(question: str, context: Context) -> RecallState | None:
    """Return the question for memory, where the run remembers; None for a plan that is given."""
    if not context.recalls or context.given is not None:
        return None
    language, first = detect_language(question), _is_about_speaker(question)
    return RecallState(question=question, language=language, first=first)


def _about_alike(question: str, recall: RecallState | None, history: list[Turn]) -> list[Turn]:
    """Return the turns that a question may take its topic from: of memory, or of documents."""
    if recall and recall.first:
        return []  # it stands alone
    if recall and not lexicon(detect_language(question)).search("pronoun", question):
        return [one for one in history if not _is_about_speaker(one.question)]
    return history


def _is_about_speaker(question: str) -> bool:
    return asks_memory(question, detect_language(question))


def _unknown(question: str) -> Understanding:
    return Understanding(
        question=question,
        language=detect_language(question),
        reason="neither the question nor an earlier one says what it is about",
    )


def _step_values(query: Understanding, path: Path, turns: int, made: Plan | None) -> dict[str, Any]:
    return {
        "decision": query.kind,
        "reason": query.reason,
        "arguments": {
            "question": query.question,
            "language": query.language,
            "intent": query.intent,
            "entities": query.entities,
            "parts": [part.search_text for part in query.parts],
            "history": turns,
            "tools": [call.tool for call in made.questions[0].calls] if made else [],
            "confidence": query.confidence,
            "path": path,
            **({"corrected": query.corrected} if query.corrected else {}),
        },
    }


def _path(query: Understanding, context: Context) -> Path:
    """Skip the planner for a question that is surely plain, or always for the classic pipeline."""
    if context.given is not None:
        return "planned"
    if context.pipeline in ONE_SEARCH:
        return "plain"
    sure = query.kind == "plain" and query.confidence >= context.settings.plan.plain_confidence
    return "plain" if sure and context.pipeline == "auto" else "planned"


def clear_earlier_run(state: State) -> Update:
    """Return what empties the keys that an earlier run on the same thread has filled.

    Messages stay: they are the history.
    """
    plain: Update = {
        **dict.fromkeys(("clarification", "plan", "answer", "draft", "recall")),
        **{name: [] for name in ("operations", "wave", "done", "unsupported", "reply")},
        **{name: {} for name in ("chosen", "rewritten", "covered")},
        **dict.fromkeys(("backtracks", "replans", "drafts"), 0),
        "evidence": Overwrite([]),
        "registers": Overwrite({}),
    }
    return {key: empty for key, empty in plain.items() if state.get(key)}


def question_and_history(messages: Sequence[AnyMessage]) -> tuple[str, list[Turn]]:
    """Return the question that waits for an answer ("" for none) and the turns before it.

    A reply to a clarifying question stands for the question that it completes.
    """
    turns: list[Turn] = []
    waiting = ""
    for message in messages:
        text = str(message.additional_kwargs.get(STANDS_FOR, message.text))
        if message.type == "human":
            if STANDS_FOR in message.additional_kwargs and turns:
                turns.pop()  # the question asked back is no answer
            waiting = text
        elif message.type == "ai" and waiting:
            if NOTED not in message.additional_kwargs:
                turns.append(Turn(waiting, text))
            waiting = ""
    return waiting, turns
