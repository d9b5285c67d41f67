"""Make the question stand alone and say what kind it is."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AnyMessage
from langgraph.runtime import Runtime

from core.budget import Usage
from core.trace import Step
from graph.context import Context, checked_question
from graph.state import State, Update
from reasoning.types import Turn


def understand(state: State, runtime: Runtime[Context]) -> Update:
    """Read the question and the history; a chat's last message is the question."""
    context = runtime.context
    started = context.clock()
    messages = state.get("messages") or []
    asked, history = question_and_history(state.get("question", ""), messages)
    question = checked_question(asked, context.settings)
    query = context.reasoner.understand(question, history)
    update: Update = {}
    tools: list[str] = []
    if query.kind == "plain":  # one question needs no planner: its tools are chosen here
        made = context.reasoner.plan(query, context.tools.specs(context.auth))
        update = {"plan": made, "current": made.questions[0].id}
        tools = [call.tool for call in made.questions[0].calls]
    spent = context.elapsed(started)
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
        ms=spent.ms,
    )
    return update | {
        "question": query.question,
        "started": started,
        "query": query,
        "usage": Usage(steps=1, ms=spent.ms),
        "trail": [step],
    }


def question_and_history(
    question: str, messages: Sequence[AnyMessage]
) -> tuple[str, list[Turn]]:
    """Return the question and the turns before it."""
    turns: list[Turn] = []
    asked = ""
    for message in messages:
        text = str(message.text)
        if message.type == "human":
            asked = text
        elif message.type == "ai" and asked:
            turns.append(Turn(asked, text))
            asked = ""
    return (question or asked), turns
