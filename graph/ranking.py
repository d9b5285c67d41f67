"""Put the evidence of a whole run into one order, whatever number of searches found it.

Reciprocal ranks of each search (Cormack et al. 2009) are summed, with a small constant, so that the
best hits of a search stay ahead. Grades are coarse, four for everything, and would spoil the order
of a good search if they came first; they only lift a passage over its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.types import Evidence

RANK = 1.0  # added to ranks: small, as a place at the top of one search tells most
LATER = 0.7  # what a later search counts beside the first, which asks the whole question
AGAIN = 0.5  # what being found once more counts beside being found; bounds what many searches add
GRADE = 0.2  # what each step of the best grade, 0..3, adds as a share


def ranked_evidence(
    evidence: Sequence[Evidence], searches: Sequence[Sequence[str]]
) -> list[Evidence]:
    """Return the evidence, best first; ties by chunk id.

    `searches` are the chunk ids that each search of the run found, best first, in the order of the
    searches; ids that are no evidence are left out. Evidence of no search comes last, by grade.
    A piece of evidence counts (1 + GRADE · grade) · Σ wₖ AGAINᵏ, where w is 1 / (RANK + rank) in a
    search, LATER times that in all but the first, and its searches are taken best first.
    """
    found: dict[str, list[float]] = {item.chunk_id: [] for item in evidence}
    for number, hits in enumerate(searches):
        weight = LATER if number else 1.0
        known = [key for key in dict.fromkeys(hits) if key in found]
        for rank, key in enumerate(known, start=1):
            found[key].append(weight / (RANK + rank))
    return sorted(evidence, key=lambda item: _order(item, found[item.chunk_id]))


def _order(item: Evidence, found: list[float]) -> tuple[float, int, str]:
    best_first = sorted(found, reverse=True)
    total = sum(share * AGAIN**place for place, share in enumerate(best_first))
    return -total * (1 + GRADE * item.best_grade), -item.best_grade, item.chunk_id
