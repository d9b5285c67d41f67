"""Say honestly that the documents do not answer."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime

from core.budget import Usage
from core.errors import CallerError
from core.time_limit import TimeUpError
from core.trace import Step
from core.types import Answer, Evidence, Plan, StopReason
from graph.context import Context
from graph.reading import asked_plan, orphans
from graph.state import State, Update
from reasoning.clarifying import plain_text
from reasoning.rendering import Help, render_refusal
from reasoning.rules.answering.summaries import SUMMARISE
from reasoning.rules.values.versions import is_other_version
from reasoning.types import Reasoner
from tools.types import ToolResult

# Nothing more is looked for where a limit ended the run.
SEARCHED = (StopReason.no_relevant_evidence, StopReason.unsupported_answer)


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
    similar = [
        plain_text(item.title or item.source)
        for item in state.get("evidence") or []
        if item.tool == SUMMARISE
        or is_other_version(state["query"].question, state["query"].language, item)
    ]
    given, steps = _help(state, plan, context)
    given = given._replace(similar=list(dict.fromkeys(similar)))
    text = render_refusal(state["query"], plan, tools, reason, given)
    answer = Answer(
        text=text,
        refused=True,
        stop_reason=reason,
        missing=[question.text for question in plan.questions] if plan else [],
        warnings=list(dict.fromkeys(state.get("warnings") or [])),
    )
    step = context.step(
        "refuse",
        began,
        decision=reason.value,
        reason=text.splitlines()[0],
    )
    return {
        "answer": answer,
        "messages": [AIMessage(content=text)],
        "usage": context.elapsed(state["started"]).plus(Usage(tool_calls=len(steps))),
        "trail": [*steps, step],
    }


def _help(state: State, plan: Plan | None, context: Context) -> tuple[Help, list[Step]]:
    """Look for what comes nearest, and without the caller's filters; nothing more at a limit."""
    given = Help(filters=context.tools.filters, rights=context.auth)
    if plan is None or state["stop_reason"] not in SEARCHED:
        return given, []
    steps: list[tuple[Step, ToolResult]] = []
    try:
        with context.thinking(state, answering=True):
            given = _nearest(given, plan, state.get("evidence") or [], context.reasoner)
            steps = _searched_wider(state, context) if given.filters else []
            for _, result in steps:
                near = context.reasoner.nearest(plan.questions[0], result.evidence)
                given = given._replace(unfiltered=near.answers)
    except TimeUpError:  # what is known by then will do
        pass
    return given, [step for step, _ in steps]


def _nearest(given: Help, plan: Plan, evidence: Sequence[Evidence], reasoner: Reasoner) -> Help:
    """Add what comes nearest to the first question for which anything does."""
    passages = {item.evidence_id: item for item in evidence if item.tool != SUMMARISE}
    for question in plan.questions:
        near = reasoner.nearest(question, list(passages.values()))
        if given.near is None or near.evidence_id:
            given = given._replace(near=near, passage=passages.get(near.evidence_id))
        if given.passage is not None:
            break
    return given


def _searched_wider(state: State, context: Context) -> list[tuple[Step, ToolResult]]:
    """Make the first search again without the caller's filters, if the budget has a call left."""
    first = next((step for step in state.get("trail") or [] if step.tool), None)
    if first is None or not context.budget.calls_left(state["usage"]):
        return []
    began, deadline = context.clock(), context.deadline(state["started"])
    try:
        result = context.tools.without_filters().run(
            first.tool, first.arguments, context.auth, deadline
        )
    except CallerError:
        return []
    step = context.step(
        "refuse",
        began,
        decision=f"{len(result.evidence)} found without the filters",
        tool=first.tool,
        arguments=first.arguments,
        auth_filter=result.auth_filter,
    )
    return [(step, result)]
