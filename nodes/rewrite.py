"""Ask for another search where nothing answers yet."""

from __future__ import annotations

from langgraph.runtime import Runtime

from core.budget import Usage
from core.trace import Step
from core.types import Call, Evidence, Rewrite, SubQuestion
from graph.context import Context
from graph.reading import Search, branches_of, searches_of
from graph.state import State, Update
from reasoning.planning.binding import bound


def rewrite(state: State, runtime: Runtime[Context]) -> Update:
    """Give each search of the wave the calls of an accepted rewrite, and count the attempt.

    A rewrite that drifts leaves no calls, so that the next stop condition gives up.
    """
    context = runtime.context
    attempts = dict(state.get("attempts") or {})
    rewritten: dict[str, list[Call]] = dict(state.get("rewritten") or {})
    steps: list[Step] = []
    warnings: list[str] = []
    started, trail = state["started"], state.get("trail") or []
    spent = Usage()
    for search in searches_of(state):
        began = context.clock()
        attempt = attempts.get(search.out, 0) + 1
        question = _question(state, search)
        with context.thinking(started, state["usage"].plus(spent), trail) as ledger:
            specs = context.tools.specs(context.auth)
            best = _best(state, question.id)
            proposed = context.reasoner.rewrite(question, best, specs, attempt)
        attempts[search.out] = attempt if proposed else context.settings.max_rewrites
        rewritten[search.out] = proposed.calls if proposed else []
        step = _step(question.id, proposed, attempts[search.out], context.elapsed(began).ms)
        update = {"calls": ledger.calls, "degraded": "; ".join(ledger.degraded)}
        steps.append(step.model_copy(update=update))
        warnings += ledger.warnings
        spent = spent.plus(context.spent(started, ledger))
    return {
        "rewritten": rewritten,
        "attempts": attempts,
        "usage": spent,
        "trail": steps,
        "warnings": warnings,
    }


def _question(state: State, search: Search) -> SubQuestion:
    """Return the question with the values it is asked with; the first where it is asked of each."""
    question = state["plan"].question(search.question)
    chosen = (state.get("chosen") or {}).get(question.id)
    branches = branches_of(state, search)
    if chosen:
        return bound(question, chosen[0])
    return branches[0].model_copy(update={"id": question.id}) if branches else question


def _best(state: State, question_id: str) -> list[Evidence]:
    return sorted(
        state.get("evidence") or [],
        key=lambda item: (-item.grades.get(question_id, 0), -item.score, item.chunk_id),
    )


def _step(question_id: str, proposed: Rewrite | None, attempt: int, ms: float) -> Step:
    return Step(
        node="rewrite",
        decision="no rewrite" if proposed is None else proposed.query,
        reason="every idea drifts from the question" if proposed is None else proposed.reason,
        question_id=question_id,
        arguments={
            "attempt": attempt,
            "similarity": None if proposed is None else proposed.similarity,
        },
        ms=ms,
    )
