"""Say honestly that the documents do not answer."""

from __future__ import annotations

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime

from core.trace import Step
from core.types import Answer
from graph.context import Context
from graph.reading import asked_plan
from graph.state import State, Update
from reasoning.rendering import render_refusal


def refuse(state: State, runtime: Runtime[Context]) -> Update:
    """Name what was looked for, where, and why it stopped."""
    context = runtime.context
    began = context.clock()
    reason = state["stop_reason"]
    plan = asked_plan(state) if state.get("plan") else None
    tools = [step.tool for step in state.get("trail") or [] if step.tool]
    text = render_refusal(state["query"], plan, tools, reason)
    answer = Answer(
        text=text,
        refused=True,
        stop_reason=reason,
        missing=[question.text for question in plan.questions] if plan else [],
        warnings=list(dict.fromkeys(state.get("warnings") or [])),
    )
    step = Step(
        node="refuse",
        decision=reason.value,
        reason=text.splitlines()[0],
        ms=context.elapsed(began).ms,
    )
    return {
        "answer": answer,
        "messages": [AIMessage(content=text)],
        "usage": context.elapsed(state["started"]),
        "trail": [step],
    }
