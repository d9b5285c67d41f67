"""Make the question stand alone and say what kind it is."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from core.budget import Usage
from core.trace import Step
from core.types import Understanding
from graph.context import Context, checked_question
from graph.state import Path, State, Update
from reasoning.planning.compiler import compiled
from reasoning.planning.proposing import proposed_plan
from reasoning.planning.running import ready
from reasoning.types import Turn


def understand(state: State, runtime: Runtime[Context]) -> Update:
    """Read the question and the history; a chat's last message is the question."""
    context = runtime.context
    started = context.clock()
    waiting, history = question_and_history(state.get("messages") or [])
    asked = state.get("question") or waiting
    last = state.get("query")
    if waiting and last is not None and asked == last.question:
        asked = waiting  # the other was left by the thread's last run
    question = checked_question(asked, context.settings)
    update = cleared(state)
    tools: list[str] = []
    notes: list[str] = []
    with context.thinking(started, Usage(), []) as ledger:
        query = context.reasoner.understand(question, history)
        path = _path(query, context)
        if path == "plain":  # one question needs no planner: its tools are chosen here
            specs = context.tools.specs(context.auth)
            made, notes = proposed_plan(context.reasoner, query, specs, context.settings)
            operations = compiled(made, context.settings)
            wave = [operation.out for operation in ready(operations, [])]
            update |= {"plan": made, "operations": operations, "wave": wave}
            tools = [call.tool for call in made.questions[0].calls]
    usage = context.spent(started, ledger)
    step = Step(
        node="understand",
        decision=query.kind,
        reason=query.reason,
        arguments={
            "question": query.question,
            "language": query.language,
            "intent": query.intent,
            "entities": query.entities,
            "parts": [part.search_text for part in query.parts],
            "history": len(history),
            "tools": tools,
            "confidence": query.confidence,
            "path": path,
        },
        ms=usage.ms,
        calls=ledger.calls,
        degraded="; ".join(ledger.degraded),
    )
    warnings = [*ledger.warnings, *notes]
    if asked != waiting:  # the next turn's history needs it among the messages
        update["messages"] = [HumanMessage(asked)]
    return update | {
        "question": query.question,
        "started": started,
        "query": query,
        "path": path,
        "usage": Overwrite(usage) if state.get("usage") else usage,
        "trail": Overwrite([step]) if state.get("trail") else [step],
        "warnings": Overwrite(warnings) if state.get("warnings") else warnings,
    }


def _path(query: Understanding, context: Context) -> Path:
    """Skip the planner for a question that is surely plain, or always for the classic pipeline."""
    if context.given is not None:
        return "planned"
    if context.pipeline == "classic":
        return "plain"
    sure = query.kind == "plain" and query.confidence >= context.settings.plain_confidence
    return "plain" if sure and context.pipeline == "auto" else "planned"


def cleared(state: State) -> Update:
    """Return what empties the keys that an earlier run on the same thread has filled.

    Messages stay: they are the history.
    """
    plain: Update = {
        "plan": None,
        "operations": [],
        "wave": [],
        "done": [],
        "chosen": {},
        "rewritten": {},
        "answer": None,
        "draft": None,
        "attempts": {},
        "backtracks": 0,
        "replans": 0,
        "covered": {},
        "drafts": 0,
        "unsupported": [],
    }
    reduced: Update = {"evidence": [], "registers": {}}
    held = {key for key, value in state.items() if value}
    return {key: empty for key, empty in plain.items() if key in held} | {
        key: Overwrite(empty) for key, empty in reduced.items() if key in held
    }


def question_and_history(messages: Sequence[AnyMessage]) -> tuple[str, list[Turn]]:
    """Return the question that waits for an answer ("" for none) and the turns before it."""
    turns: list[Turn] = []
    waiting = ""
    for message in messages:
        text = str(message.text)
        if message.type == "human":
            waiting = text
        elif message.type == "ai" and waiting:
            turns.append(Turn(waiting, text))
            waiting = ""
    return waiting, turns
