"""Write down what a run came to, with the ranking that it showed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, cast

from core.budget import Usage
from core.errors import CarrelError
from core.operations import AnyOperation, FilledQuery, MapRetrieve, Reference
from core.types import Answer, Claim, Clarification, Evidence, Finding, Plan, StopReason
from graph.reading import queries_of, register
from graph.state import State
from reasoning.planning.compiler import SEARCHES
from reasoning.planning.slots import bound_plan, one_line, producers

SearchKind = Literal["asked", "rewritten", "other_value", "hop"]
# What a search counts: one that asks a question of the plan with the values that stayed, one in
# other words, one with values that led to worse evidence, and a hop to names in the evidence. A
# hop's best hit stays behind the first seven of a search that asks, unless both found it.
WEIGHTS: dict[SearchKind, float] = {
    "asked": 1.0,
    "rewritten": 0.6,
    "other_value": 0.5,
    "hop": 0.2,
}
RANK = 2.0  # added to ranks: small, as a place at the top of one search tells most
AGAIN = 0.7  # what being found once more counts beside being found; bounds what many searches add
GRADE = 0.3  # what each step of the best grade, 0..3, adds as a share


class Ranking(NamedTuple):
    """Hold what one search found, best first, and what kind of search it was."""

    kind: SearchKind
    chunk_ids: Sequence[str]


def rankings_of(state: State) -> list[Ranking]:
    """Return the searches that a run made, in the order of its operations."""
    found: list[Ranking] = []
    for operation in state.get("operations") or []:
        if not isinstance(operation, SEARCHES):
            continue
        stored = register(state, operation.out)
        searches = stored.searches if stored else []
        if isinstance(operation, MapRetrieve):
            found += [Ranking("hop", hits.chunk_ids) for hits in searches]
            continue
        kept = _kept(state, operation)
        first = stored.first_pass if stored else 0
        for place, hits in enumerate(searches):
            if place >= first:
                found.append(Ranking("rewritten", hits.chunk_ids))
            else:
                kind: SearchKind = "asked" if hits.branch in kept else "other_value"
                found.append(Ranking(kind, hits.chunk_ids))
    return found


def _kept(state: State, operation: Any) -> set[int]:  # noqa: ANN401 - one of SEARCHES
    """Return the places of the queries whose evidence stands."""
    queries = queries_of(state, operation)
    chosen = (state.get("chosen") or {}).get(operation.question)
    if not isinstance(operation.query, Reference) or chosen is None:
        return set(range(len(queries)))
    return {place for place, query in enumerate(queries) if query in chosen}


def ranked_evidence(evidence: Sequence[Evidence], searches: Sequence[Ranking]) -> list[Evidence]:
    """Return the evidence, best first; ties by chunk id.

    Chunk ids that are no evidence are left out; evidence of no search comes last, by grade. A piece
    counts (1 + GRADE · grade) · Σ wₖ AGAINᵏ, where w is the weight of a search's kind / (RANK +
    rank), and its searches are taken best first.
    """
    found: dict[str, list[float]] = {item.chunk_id: [] for item in evidence}
    for kind, hits in searches:
        known = [key for key in dict.fromkeys(hits) if key in found]
        for rank, key in enumerate(known, start=1):
            found[key].append(WEIGHTS[kind] / (RANK + rank))

    def order(item: Evidence) -> tuple[float, int, str]:
        best_first = sorted(found[item.chunk_id], reverse=True)
        total = sum(share * AGAIN**place for place, share in enumerate(best_first))
        return -total * (1 + GRADE * item.best_grade), -item.best_grade, item.chunk_id

    return sorted(evidence, key=order)


def run_result(run_id: str, state: dict[str, Any], warnings: Sequence[str]) -> dict[str, Any]:
    """Return a run as it is printed with --json and kept."""
    answer: Answer | None = state.get("answer")
    asks: Clarification | None = state.get("clarification")
    if asks is not None:
        answer = Answer(text="", stop_reason=StopReason.clarification_needed)
    if answer is None:
        raise CarrelError("the run ended without an answer or a refusal", value=run_id)
    usage: Usage = state.get("usage") or Usage()
    found: list[Evidence] = state.get("evidence") or []
    of = {item.evidence_id: item.collection for item in found if item.collection}
    ranked = ranked_evidence(found, rankings_of(cast("State", state)))
    return {
        "run_id": run_id,
        "answer": answer.text,
        "claims": [_claim(claim, of) for claim in answer.claims],
        "conflicts": [one.model_dump() for one in answer.conflicts],
        "refused": answer.refused,
        "stop_reason": answer.stop_reason.value,
        "evidence": [item.model_dump(exclude={"document_key"}) for item in ranked],
        "usage": {
            "steps": usage.steps,
            "tool_calls": usage.tool_calls,
            "tokens": usage.tokens,
            "model_calls": usage.model_calls,
            "model_tokens": usage.model_tokens,
            "degraded": usage.degraded,
            "cost": round(usage.cost, 6),
            "ms": round(usage.ms, 1),
        },
        "plan": _plan(state),
        "missing": answer.missing,
        "warnings": [*warnings, *answer.warnings],
        "clarification": None if asks is None else asks.model_dump(),
    }


def _claim(claim: Claim, of: dict[str, str]) -> dict[str, Any]:
    """Return a claim; of several collections each citation names its own."""
    fields = claim.model_dump()
    for citation in fields["citations"]:
        citation["collection"] = of.get(citation["evidence_id"], "")
    return fields


def _plan(state: dict[str, Any]) -> dict[str, Any]:
    """Return the plan as it was run, with the values of its slots and where they stand."""
    plan: Plan | None = state.get("plan")
    if plan is None:
        return {"questions": [], "operations": [], "slots": []}
    chosen: dict[str, list[FilledQuery]] = state.get("chosen") or {}
    operations: list[AnyOperation] = state.get("operations") or []
    return {
        "path": state.get("path", ""),
        "questions": [question.model_dump() for question in plan.questions],
        "asked": [
            {"id": question.id, "text": question.text}
            for question in bound_plan(plan, chosen).questions
        ],
        "operations": [operation.model_dump() for operation in operations],
        "ran": state.get("done") or [],
        "slots": [
            {
                "slot": slot,
                "value": one_line(finding.value),
                "question": made.id,
                "evidence_id": finding.evidence_id,
                "field": finding.field,
                "start": finding.start,
                "end": finding.end,
            }
            for made, slot in producers(plan)
            for finding in _values(slot, chosen)
        ],
        "backtracks": state.get("backtracks", 0),
        "replans": state.get("replans", 0),
    }


def _values(slot: str, chosen: dict[str, list[FilledQuery]]) -> list[Finding]:
    """Return the values of a slot that questions were asked with, each once."""
    used = [way.values[slot] for ways in chosen.values() for way in ways if slot in way.values]
    return list(dict.fromkeys(used))
