"""Ask for another search where nothing answers yet."""

from __future__ import annotations

from langgraph.runtime import Runtime

from core.budget import Usage
from core.trace import Step
from core.types import Call, Plan, Rewrite, SubQuestion
from graph.context import Context
from graph.reading import Search, branches_of, searches_of
from graph.state import State, Update
from reasoning.planning.slots import bound
from reasoning.rules.plan import asked_by_itself

ALONE = "asked without what it took over"


def rewrite(state: State, runtime: Runtime[Context]) -> Update:
    """Give each search of the wave the calls of its one rewrite, none where that drifts.

    A question that took what it is about from the one before is first asked by itself.
    """
    context, plan = runtime.context, state["plan"]
    rewritten: dict[str, list[Call]] = dict(state.get("rewritten") or {})
    steps: list[Step] = []
    warnings: list[str] = []
    spent = Usage()
    for search in searches_of(state):
        began = context.clock()
        question = _question(state, search)
        with context.thinking(state, spent) as ledger:
            specs = context.tools.specs(context.auth)
            alone = asked_by_itself(plan.question(search.question))
            best = sorted(
                state.get("evidence") or [],
                key=lambda item: (-item.grades.get(question.id, 0), -item.score, item.chunk_id),
            )
            proposed: Rewrite | None
            if alone is not None:
                proposed = Rewrite(
                    query=alone.query, calls=alone.calls, similarity=1.0, reason=ALONE
                )
                plan = _with(plan, alone)
            else:
                proposed = context.reasoner.rewrite(question, best, specs)
                if proposed is not None and any("aggregate" in one.arguments
                                                for one in proposed.calls):  # fmt: skip
                    # How what it counts is said hangs on what it was asked.
                    asked = plan.question(search.question)
                    plan = _with(plan, asked.model_copy(update={"calls": proposed.calls}))
        rewritten[search.out] = proposed.calls if proposed else []
        step = context.step(
            "rewrite",
            began,
            ledger,
            decision="no rewrite" if proposed is None else proposed.query,
            reason="every idea drifts from the question" if proposed is None else proposed.reason,
            question_id=question.id,
            arguments={"similarity": None if proposed is None else proposed.similarity},
        )
        steps.append(step)
        warnings += ledger.warnings
        spent = spent.plus(context.spent(state["started"], ledger))
    return {
        "plan": plan,
        "rewritten": rewritten,
        "usage": spent,
        "trail": steps,
        "warnings": warnings,
    }


def _with(plan: Plan, question: SubQuestion) -> Plan:
    """Return a plan with a question in the place of the one of its id."""
    questions = [question if one.id == question.id else one for one in plan.questions]
    return plan.model_copy(update={"questions": questions})


def _question(state: State, search: Search) -> SubQuestion:
    """Return the question with the values it is asked with; the first where it is asked of each."""
    question = state["plan"].question(search.question)
    chosen = (state.get("chosen") or {}).get(question.id)
    branches = branches_of(state, search)
    if chosen:
        return bound(question, chosen[0])
    return branches[0].model_copy(update={"id": question.id}) if branches else question
