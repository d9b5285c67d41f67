"""Ask for another search for the current sub-question."""

from __future__ import annotations

from langgraph.runtime import Runtime

from core.trace import Step
from core.types import Plan
from graph.context import Context
from graph.state import State, Update


def rewrite(state: State, runtime: Runtime[Context]) -> Update:
    """Replace the sub-question's calls by those of an accepted rewrite, and count the attempt.

    A rewrite that drifts leaves no calls, so that the next stop condition gives up.
    """
    context = runtime.context
    began = context.clock()
    question = state["plan"].question(state["current"])
    attempts = dict(state.get("attempts") or {})
    attempts[question.id] = attempts.get(question.id, 0) + 1
    best = sorted(
        state.get("evidence") or [],
        key=lambda item: (-item.grades.get(question.id, 0), -item.score, item.chunk_id),
    )
    started, trail = state["started"], state.get("trail") or []
    with context.thinking(started, state["usage"], trail) as ledger:
        proposed = context.reasoner.rewrite(
            question, best, context.tools.specs(context.auth), attempts[question.id]
        )
    if proposed is None:
        attempts[question.id] = context.settings.max_rewrites
    calls = [] if proposed is None else proposed.calls
    changed = question.model_copy(update={"calls": calls})
    questions = [changed if q.id == question.id else q for q in state["plan"].questions]
    step = Step(
        node="rewrite",
        decision="no rewrite" if proposed is None else proposed.query,
        reason="every idea drifts from the question" if proposed is None else proposed.reason,
        question_id=question.id,
        arguments={
            "attempt": attempts[question.id],
            "similarity": None if proposed is None else proposed.similarity,
        },
        ms=context.elapsed(began).ms,
        calls=ledger.calls,
        degraded="; ".join(ledger.degraded),
    )
    return {
        "plan": Plan(questions=questions),
        "attempts": attempts,
        "usage": context.spent(started, ledger),
        "trail": [step],
        "warnings": ledger.warnings,
    }
