"""Take values of a slot, or names to follow, out of evidence."""

from __future__ import annotations

from langgraph.runtime import Runtime

from core.operations import ExtractAnswer, ExtractEntities, Register
from core.types import Evidence, Finding, SubQuestion
from graph.context import Context
from graph.reading import (
    ENOUGH_GRADE,
    answer_ids,
    asked_plan,
    find_evidence,
    operation_of,
    register,
)
from graph.state import State, Update
from reasoning.planning.slots import one_line
from reasoning.question_words import leading_names


def extract(state: State, runtime: Runtime[Context]) -> Update:
    """Extract what one operation asks for; a value that is not in its evidence is dropped."""
    context = runtime.context
    began = context.clock()
    operation = operation_of(state)
    values: list[Finding] = []
    names: list[str] = []
    with context.thinking(state) as ledger:
        if isinstance(operation, ExtractAnswer):
            values = _values(state, operation, context)
            written = Register(kind="values", findings=values)
            shown = [one_line(value.value) for value in values]
        elif isinstance(operation, ExtractEntities):
            names = _names(state, operation, context)
            written = Register(kind="entities", entities=names)
            shown = names
        else:
            raise TypeError(f"{operation.op} extracts nothing")
    step = context.step(
        "extract",
        began,
        ledger,
        decision="; ".join(shown) or "nothing",
        reason=f"{operation.op} {operation.out}",
        question_id=operation.question,
        evidence=[(value.evidence_id, 1.0) for value in values],
    )
    return {
        "registers": {operation.out: written},
        "usage": context.spent(state["started"], ledger),
        "trail": [step],
        "warnings": ledger.warnings,
    }


def _values(state: State, operation: ExtractAnswer, context: Context) -> list[Finding]:
    """Return values of evidence that answers, best first: for one branching and its undoing."""
    evidence = [
        item
        for item in _evidence(state, operation.question, operation.hits)
        if max(item.grades.get(name, 0) for name in answer_ids(state, operation.question))
        >= ENOUGH_GRADE
    ]
    question = _question(state, operation.question)
    wanted = question.model_copy(update={"wants": operation.wants})
    by_id = {item.evidence_id: item for item in evidence}
    found: dict[str, Finding] = {}
    for value in context.reasoner.extract(wanted, evidence) if evidence else []:
        item = by_id.get(value.evidence_id)
        text = getattr(item, value.field) if item else ""
        fits = 0 < len(value.value.strip()) <= context.settings.plan.slot_chars
        if fits and text[value.start : value.end] == value.value:
            found.setdefault(one_line(value.value).casefold(), value)
    most = operation.fan_out * (1 + context.settings.plan.max_backtracks)
    return list(found.values())[:most]


def _names(state: State, operation: ExtractEntities, context: Context) -> list[str]:
    return leading_names(
        _question(state, operation.question),
        _evidence(state, operation.question, operation.hits),
        context.tools.term_weights(),
        operation.max_entities,
    )


def _question(state: State, question_id: str) -> SubQuestion:
    """Return a question as it was asked; of one that is asked of every value, the first."""
    names = answer_ids(state, question_id)
    return next(one for one in asked_plan(state).questions if one.id in {question_id, *names})


def _evidence(state: State, question_id: str, hits: str) -> list[Evidence]:
    """Return the evidence of a register, best graded first."""
    stored = register(state, hits)
    names = answer_ids(state, question_id)
    found = find_evidence(state, stored.hits if stored else [])
    return sorted(found, key=lambda item: -max((item.grades.get(n, 0) for n in names), default=0))
