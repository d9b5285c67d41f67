"""Say honestly that the documents do not answer."""

from __future__ import annotations

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime

from core.types import Answer
from graph.context import Context
from graph.reading import asked_plan, orphans
from graph.state import State, Update
from reasoning.clarifying import plain_text
from reasoning.rendering import render_refusal
from reasoning.rules.answering.summaries import SUMMARISE
from reasoning.rules.values.versions import is_other_version


def refuse(state: State, runtime: Runtime[Context]) -> Update:
    """Name what was looked for, where, and why it stopped."""
    context = runtime.context
    began = context.clock()
    reason = state["stop_reason"]
    plan = asked_plan(state) if state.get("plan") else None
    if plan is not None:  # what waits for a value that was not found is no question yet
        waiting = orphans(state)
        asked = [question for question in plan.questions if question.id not in waiting]
        plan = plan.model_copy(update={"questions": asked or plan.questions})
    tools = [step.tool for step in state.get("trail") or [] if step.tool]
    near = [
        plain_text(item.title or item.source)
        for item in state.get("evidence") or []
        if item.tool == SUMMARISE
        or is_other_version(state["query"].question, state["query"].language, item)
    ]
    text = render_refusal(state["query"], plan, tools, reason, list(dict.fromkeys(near)))
    answer = Answer(
        text=text,
        refused=True,
        stop_reason=reason,
        missing=[question.text for question in plan.questions] if plan else [],
        warnings=list(dict.fromkeys(state.get("warnings") or [])),
    )
    is_left = state["usage"].steps < context.budget.steps
    step = context.step(
        "refuse",
        began,
        decision=reason.value,
        reason=text.splitlines()[0],
    )
    return {
        "answer": answer,
        "messages": [AIMessage(content=text)],
        # However little is left, a refusal is given.
        "usage": context.elapsed(state["started"]).model_copy(update={"steps": int(is_left)}),
        "trail": [step],
    }
