"""Propose the plan, and pick the sub-question that is searched next."""

from __future__ import annotations

from langgraph.runtime import Runtime

from core.trace import Step
from core.types import Plan
from graph.context import Context
from graph.state import State, Update


def plan(state: State, runtime: Runtime[Context]) -> Update:
    """Make the plan on the first visit; then take the first sub-question that is still open."""
    context = runtime.context
    began = context.clock()
    query = state["query"]
    made = state.get("plan")
    started, trail = state["started"], state.get("trail") or []
    with context.thinking(started, state["usage"], trail) as ledger:
        proposed: Plan = made or context.reasoner.plan(query, context.tools.specs(context.auth))
    closed = set(state.get("closed") or [])
    current = next(q for q in proposed.questions if q.id not in closed)
    step = Step(
        node="plan",
        decision=f"next: {current.id}" if made else f"{len(proposed.questions)} sub-questions",
        reason="; ".join(
            f"{q.id}: {q.text} → {', '.join(call.tool for call in q.calls)}"
            for q in ([current] if made else proposed.questions)
        ),
        question_id=current.id,
        ms=context.elapsed(began).ms,
        calls=ledger.calls,
        degraded="; ".join(ledger.degraded),
    )
    return {
        "plan": proposed,
        "current": current.id,
        "usage": context.spent(started, ledger),
        "trail": [step],
        "warnings": ledger.warnings,
    }
