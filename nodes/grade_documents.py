"""Judge what the searches of a wave have found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.runtime import Runtime

from core.budget import Usage
from core.operations import FilledQuery, MapRetrieve, Register, SearchHits
from core.trace import Step
from core.types import Evidence, Grade, SubQuestion
from graph.context import Context
from graph.reading import (
    ENOUGH_GRADE,
    Search,
    branches_of,
    find_evidence,
    queries_of,
    register,
    searches_of,
)
from graph.state import State, Update
from reasoning.planning.slots import asks_each
from reasoning.rules.recall import is_private, speaks_of_speaker

Judged = list[tuple[SubQuestion, list[Grade]]]


def grade_documents(state: State, runtime: Runtime[Context]) -> Update:
    """Grade the newly found evidence 0..3; the value that leads to the best evidence stays.

    What was found for the other values of a slot counts as related at most.
    """
    context = runtime.context
    graded: list[Evidence] = []
    steps: list[Step] = []
    warnings: list[str] = []
    registers: dict[str, Register] = {}
    chosen = dict(state.get("chosen") or {})
    spent = Usage()
    for search in searches_of(state):
        began = context.clock()
        with context.thinking(state, spent) as ledger:
            stored = register(state, search.out) or Register(kind="hits")
            judged = _judged(state, search, stored.searches[stored.graded :], context)
        kept = _of_turn(state, _kept(state, search, judged))
        chosen |= _chosen(state, search, judged)
        graded += _graded(state, kept)
        registers[search.out] = stored.model_copy(update={"graded": len(stored.searches)})
        steps.append(context.step("grade_documents", began, ledger, **_step_values(search, kept)))
        warnings += ledger.warnings
        spent = spent.plus(context.spent(state["started"], ledger))
    return {
        "evidence": graded,
        "registers": registers,
        "chosen": chosen,
        "usage": spent,
        "trail": steps,
        "warnings": warnings,
    }


def _judged(state: State, search: Search, fresh: Sequence[SearchHits], context: Context) -> Judged:
    """Grade what each query has found; queries that ask the same are graded together."""
    branches = branches_of(state, search)
    found: dict[tuple[str, str], list[str]] = {}
    asked: dict[tuple[str, str], SubQuestion] = {}
    for place, branch in enumerate(branches):
        key = (branch.id, branch.text)
        asked.setdefault(key, branch)
        own = (name for hits in fresh if hits.branch == place for name in hits.chunk_ids)
        found[key] = list(dict.fromkeys([*found.get(key, []), *own]))
    return [
        (branch, context.reasoner.grade(branch, find_evidence(state, found[key])))
        for key, branch in asked.items()
    ]


def _kept(state: State, search: Search, judged: Judged) -> Judged:
    """Return the grades that stand: of one value, or of each where the question asks of each."""
    question = state["plan"].question(search.question)
    if isinstance(search, MapRetrieve):
        # What a hop found stays behind what answers the question itself.
        return [
            (branch, [_at_most(ENOUGH_GRADE, one) for one in grades]) for branch, grades in judged
        ]
    if len(judged) < 2 or asks_each(state["plan"], question):
        return judged
    best, better = _winner(judged), "another value led to better evidence; "
    return [
        (branch, grades if n == best else [_at_most(ENOUGH_GRADE - 1, g, better) for g in grades])
        for n, (branch, grades) in enumerate(judged)
    ]


def _of_turn(state: State, judged: Judged) -> Judged:
    """Return the grades without what answers nothing about the speaker, or to a mere statement.

    A text that speaks of others tells nothing of the speaker; only one of its own language tells
    surely what a statement is about.
    """
    recall, states, language = state.get("recall"), state.get("reply"), state["query"].language
    private = recall is not None and recall.first and is_private(recall.question, recall.language)
    if not private and not states:
        return judged
    by_id = {item.evidence_id: item for item in state.get("evidence") or []}

    def own(grade: Grade) -> Grade:
        item = by_id[grade.evidence_id]
        if private and not speaks_of_speaker(item.text, item.language):
            return _at_most(ENOUGH_GRADE - 1, grade, "it speaks of others; ")
        if states and item.language != language:
            return _at_most(ENOUGH_GRADE - 1, grade, "nothing is asked; ")
        return grade

    return [(branch, [own(one) for one in grades]) for branch, grades in judged]


def _chosen(state: State, search: Search, judged: Judged) -> dict[str, list[FilledQuery]]:
    """Return the queries whose evidence stands, by question; a later pass changes nothing."""
    question = state["plan"].question(search.question)
    queries = queries_of(state, search)
    if isinstance(search, MapRetrieve) or not queries or question.id in (state.get("chosen") or {}):
        return {}
    if asks_each(state["plan"], question):
        return {question.id: queries}
    asked = judged[_winner(judged)][0]
    return {question.id: [next(query for query in queries if query.text == asked.text)]}


def _winner(judged: Judged) -> int:
    """Return the place of the query with the best evidence, the first of several."""
    best = [max((grade.grade for grade in grades), default=0) for _, grades in judged]
    return best.index(max(best))


def _at_most(most: int, grade: Grade, why: str = "") -> Grade:
    if grade.grade <= most:
        return grade
    return grade.model_copy(update={"grade": most, "reason": f"{why}{grade.reason}"})


def _graded(state: State, kept: Judged) -> list[Evidence]:
    by_id = {item.evidence_id: item for item in state.get("evidence") or []}
    graded = []
    for branch, grades in kept:
        for grade in grades:
            item = by_id[grade.evidence_id]
            update: dict[str, Any] = {"grades": {**item.grades, branch.id: grade.grade}}
            if grade.reading is not None:
                update["readings"] = {**item.readings, branch.id: grade.reading}
            graded.append(item.model_copy(update=update))
    return graded


def _step_values(search: Search, kept: Judged) -> dict[str, Any]:
    ranked = sorted(
        (grade for _, grades in kept for grade in grades),
        key=lambda grade: (-grade.grade, grade.evidence_id),
    )
    counts = [sum(1 for grade in ranked if grade.grade == level) for level in (3, 2, 1, 0)]
    return {
        "decision": "answers {}, partly {}, related {}, off topic {}".format(*counts),
        "reason": ranked[0].reason if ranked else "nothing was found",
        "question_id": search.question,
        "evidence": [(grade.evidence_id, float(grade.grade)) for grade in ranked],
    }
