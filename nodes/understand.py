"""Make the question stand alone and say what kind it is."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from core.budget import Usage
from core.trace import Step
from graph.context import Context, checked_question
from graph.state import State, Update
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
    with context.thinking(started, Usage(), []) as ledger:
        query = context.reasoner.understand(question, history)
        if query.kind == "plain":  # one question needs no planner: its tools are chosen here
            made = context.reasoner.plan(query, context.tools.specs(context.auth))
            update |= {"plan": made, "current": made.questions[0].id}
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
        },
        ms=usage.ms,
        calls=ledger.calls,
        degraded="; ".join(ledger.degraded),
    )
    if asked != waiting:  # the next turn's history needs it among the messages
        update["messages"] = [HumanMessage(asked)]
    return update | {
        "question": query.question,
        "started": started,
        "query": query,
        "usage": Overwrite(usage) if state.get("usage") else usage,
        "trail": Overwrite([step]) if state.get("trail") else [step],
        "warnings": Overwrite(ledger.warnings) if state.get("warnings") else ledger.warnings,
    }


def cleared(state: State) -> Update:
    """Return what empties the keys that an earlier run on the same thread has filled.

    Messages stay: they are the history.
    """
    plain: Update = {
        "plan": None,
        "answer": None,
        "draft": None,
        "found": [],
        "attempts": {},
        "drafts": 0,
        "unsupported": [],
    }
    reduced: Update = {"evidence": [], "closed": []}
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
