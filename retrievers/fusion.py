"""Merge the scores of two channels over one pool of candidates into one ranking.

Every function takes arrays of shape (n,) over the same candidates. Each candidate has an exact
score in both channels, also where only one of them proposed it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]
else:
    Scores = Any

TAIL = 6.0  # standard deviations that count as much as the best BM25 score


def min_max(scores: Scores) -> Scores:
    """Scale scores to 0..1; equal scores give 1 each, or 0 when nothing was found at all."""
    import numpy as np

    if not len(scores):
        return scores
    low, high = float(scores.min()), float(scores.max())
    if high == low:
        return np.full(len(scores), 1.0 if high > 0 else 0.0)
    return np.asarray((scores - low) / (high - low))


def standardise(scores: Scores, mean: float, deviation: float, rows: int) -> Scores:
    """Return how far scores stand out from all `rows` of the collection, about 0..1.

    That is (score − mean) / deviation over TAIL, or over the most that so few rows can reach,
    √(n − 1) (Samuelson's inequality). A channel in which nothing stands out gives little.
    """
    import numpy as np

    if deviation <= 0 or rows < 2:
        return min_max(scores)
    reach = min(TAIL, (rows - 1) ** 0.5)
    return np.asarray((scores - mean) / deviation / reach)


def proportion(scores: Scores) -> Scores:
    """Return scores as shares of the best one; without a positive score all are 0."""
    import numpy as np

    best = float(scores.max()) if len(scores) else 0.0
    return np.asarray(scores / best) if best > 0 else np.zeros(len(scores))


def weighted_sum(vector: Scores, text: Scores, weight: float) -> Scores:
    """Add two channels: `weight` of the first, the rest of the second (SPEC T3)."""
    import numpy as np

    return np.asarray(weight * vector + (1.0 - weight) * text)


def reciprocal_ranks(scores: Scores, found: Scores, *, constant: int) -> Scores:
    """Return 1 / (constant + rank) for what the channel found, else 0 (Cormack et al. 2009).

    `found` is a mask of the candidates the channel itself proposed; equal scores share a rank.
    """
    import numpy as np

    ranks = np.searchsorted(np.sort(-scores[found]), -scores, side="left") + 1
    return np.where(found, 1.0 / (constant + ranks), 0.0)


def best_mask(scores: Scores, limit: int, least: float) -> Scores:
    """Mark the `limit` best scores that are above `least`; of equal ones the earlier."""
    import numpy as np

    kept = np.zeros(len(scores), dtype=bool)
    rows = np.flatnonzero(scores > least)
    kept[rows[np.argsort(-scores[rows], kind="stable")[:limit]]] = True
    return np.asarray(kept)
