"""Put the evidence of a whole run into one order, whatever number of searches found it.

Reciprocal ranks of each search (Cormack et al. 2009) are summed, with a small constant, so that the
best hits of a search stay ahead. Grades are coarse, four for everything, and would spoil the order
of a good search if they came first; they only lift a passage over its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from core.operations import MapRetrieve, Reference
from core.types import Evidence
from graph.reading import queries_of, register
from graph.state import State
from reasoning.planning.running import SEARCHES

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
        held = register(state, operation.out)
        searches = held.searches if held else []
        if isinstance(operation, MapRetrieve):
            found += [Ranking("hop", hits.chunk_ids) for hits in searches]
            continue
        kept = _kept(state, operation)
        first = held.first_pass if held else 0
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
    return sorted(evidence, key=lambda item: _order(item, found[item.chunk_id]))


def _order(item: Evidence, found: list[float]) -> tuple[float, int, str]:
    best_first = sorted(found, reverse=True)
    total = sum(share * AGAIN**place for place, share in enumerate(best_first))
    return -total * (1 + GRADE * item.best_grade), -item.best_grade, item.chunk_id
