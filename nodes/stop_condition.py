"""Decide from several signals whether to answer, search again, go on, or give up."""

from __future__ import annotations

from langgraph.runtime import Runtime

from core.trace import Step
from core.types import StopReason
from graph.context import Context
from graph.state import Outcome, State, Update

ENOUGH_GRADE = 2


def stop_condition(state: State, runtime: Runtime[Context]) -> Update:
    """Weigh budget, grades, required fields, attempts and what is still open."""
    context = runtime.context
    began = context.clock()
    current = state["current"]
    usage = state["usage"].plus(context.elapsed(state["started"]))
    limit = context.budget.exceeded(usage)
    satisfied = _best_grade(state, current) >= ENOUGH_GRADE
    attempts = (state.get("attempts") or {}).get(current, 0)
    closed = [*(state.get("closed") or [])]
    can_rewrite = attempts < context.settings.max_rewrites
    give_up = not satisfied and not can_rewrite
    newly_closed = [current] if satisfied or give_up or limit else []
    closed += newly_closed
    still_open = [q.id for q in state["plan"].questions if q.id not in closed]
    outcome, reason, why = _decide(state, closed, still_open, limit, satisfied)
    step = Step(
        node="stop_condition",
        decision=outcome,
        reason=f"{reason.value}: {why}" if outcome in ("enough", "never") else why,
        question_id=current,
        ms=context.elapsed(began).ms,
    )
    update: Update = {
        "outcome": outcome,
        "closed": newly_closed,
        "stop_reason": reason,
        "usage": context.elapsed(state["started"]),
        "trail": [step],
    }
    if limit is not None:
        update["warnings"] = [f"stopped early: {limit.value}"]
    return update


def _decide(
    state: State,
    closed: list[str],
    still_open: list[str],
    limit: StopReason | None,
    satisfied: bool,
) -> tuple[Outcome, StopReason, str]:
    """Return the outcome, the stop reason it would end with, and the signals in words."""
    answered = [q.id for q in state["plan"].questions if _best_grade(state, q.id) >= ENOUGH_GRADE]
    asked = len(state["plan"].questions)
    sourced = f"{len(answered)} of {asked} sub-questions have evidence"
    if limit is not None:
        # Partial evidence is worth an answer; the limit stays the reason it ended.
        return ("enough" if answered else "never"), limit, f"{limit.value}, {sourced}"
    if state["current"] not in closed:
        return "weak", StopReason.no_relevant_evidence, f"nothing answers yet, {sourced}"
    if still_open:
        word = "answered" if satisfied else "given up"
        return "next", StopReason.enough_evidence, f"{state['current']} {word}, {sourced}"
    if not answered:
        return "never", StopReason.no_relevant_evidence, sourced
    if len(answered) < asked:
        return "enough", StopReason.required_fields_missing, sourced
    return "enough", StopReason.enough_evidence, sourced


def _best_grade(state: State, question_id: str) -> int:
    return max((item.grades.get(question_id, 0) for item in state.get("evidence") or []), default=0)
