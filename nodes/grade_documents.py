"""Judge what was found for the current sub-question."""

from __future__ import annotations

from langgraph.runtime import Runtime

from core.trace import Step
from graph.context import Context
from graph.state import State, Update


def grade_documents(state: State, runtime: Runtime[Context]) -> Update:
    """Grade the newly found evidence 0..3."""
    context = runtime.context
    began = context.clock()
    question = state["plan"].question(state["current"])
    found = set(state.get("found") or [])
    items = [item for item in state.get("evidence") or [] if item.chunk_id in found]
    started, trail = state["started"], state.get("trail") or []
    with context.thinking(started, state["usage"], trail) as ledger:
        grades = {grade.evidence_id: grade for grade in context.reasoner.grade(question, items)}
    graded = [
        item.model_copy(
            update={"grades": {**item.grades, question.id: grades[item.evidence_id].grade}}
        )
        for item in items
        if item.evidence_id in grades
    ]
    ranked = sorted(grades.values(), key=lambda grade: (-grade.grade, grade.evidence_id))
    counts = [sum(1 for g in ranked if g.grade == level) for level in (3, 2, 1, 0)]
    step = Step(
        node="grade_documents",
        decision="answers {}, partly {}, related {}, off topic {}".format(*counts),
        reason=ranked[0].reason if ranked else "nothing was found",
        question_id=question.id,
        evidence=[(grade.evidence_id, float(grade.grade)) for grade in ranked],
        ms=context.elapsed(began).ms,
        calls=ledger.calls,
        degraded="; ".join(ledger.degraded),
    )
    return {
        "evidence": graded,
        "usage": context.spent(started, ledger),
        "trail": [step],
        "warnings": ledger.warnings,
    }
