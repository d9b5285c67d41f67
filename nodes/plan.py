"""Propose the plan, and pick the operations that run next."""

from __future__ import annotations

from langgraph.runtime import Runtime

from core.types import Plan
from graph.context import Context
from graph.reading import collect_settled
from graph.state import State, Update
from reasoning.planning.compiler import ready, render_operation
from reasoning.planning.slots import filled

STEPS = 2  # of one search: it retrieves and grades
OWN_STEPS = 2  # of planning itself, and of the stop condition after the wave


def plan(state: State, runtime: Runtime[Context]) -> Update:
    """Make and compile the plan on the first visit; then take the operations that can run."""
    context = runtime.context
    began = context.clock()
    operations = state.get("operations") or []
    update: Update = {}
    notes: list[str] = []
    with context.thinking(state) as ledger:
        if not operations:
            made, operations, notes = context.planned(state["query"])
            update = {"plan": made, "operations": operations}
    wave = ready(operations, state.get("done") or [])
    # What runs side by side is not stopped between, so a wave is no wider than the steps left.
    left = context.budget.steps_left(state["usage"]) - OWN_STEPS
    wave = wave[: max(1, left // STEPS)]
    asked = len(update["plan"].questions) if update else 0
    count = f"{asked} question{'s' if asked > 1 else ''}; " if update else ""
    ran = ", ".join(f"{one.op} {one.out}" for one in wave)
    served = {getattr(one, "question", "") for one in wave}
    step = context.step(
        "plan",
        began,
        ledger,
        decision=f"{count}{ran}",
        reason=_summary(update["plan"]) if update else "; ".join(map(render_operation, wave)),
        question_id=served.pop() if len(served) == 1 else "",
        arguments={}
        if update
        else {"slots": {k: v.value for k, v in collect_settled(state).items()}},
    )
    return update | {
        "wave": [one.out for one in wave],
        "usage": context.spent(state["started"], ledger),
        "trail": [step],
        "warnings": [*ledger.warnings, *notes],
    }


def _summary(made: Plan) -> str:
    return "; ".join(
        f"{one.id}: {filled(one.text, {})}"
        + (f" → {{{one.slot}}}" if one.slot else "")
        + (f" (after {', '.join(one.deps)})" if one.deps else "")
        for one in made.questions
    )
