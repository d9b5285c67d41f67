"""Merge the scores of two channels over one pool of candidates into one ranking.

Every function takes arrays of shape (n,) over the same candidates. Each candidate has an exact
score in both channels, also where only one of them proposed it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    Scores = NDArray[np.float64]
else:
    Scores = Any

RRF_CONSTANT = 60  # of Cormack, Clarke and Büttcher, SIGIR 2009

TAIL = 6.0  # standard deviations that count as much as the best BM25 score


def standardise(scores: Scores, mean: float, deviation: float, rows: int) -> Scores:
    """Return how far scores stand out from all `rows` of the collection, about 0..1.

    That is (score − mean) / deviation over TAIL, or over the most that so few rows can reach,
    √(n − 1) (Samuelson's inequality). Where no two scores differ all are 0.
    """
    if deviation <= 0 or rows < 2:
        return np.zeros(len(scores))
    reach = min(TAIL, (rows - 1) ** 0.5)
    return np.asarray((scores - mean) / deviation / reach)


def proportion(scores: Scores, rows: int) -> Scores:
    """Return BM25 scores as shares of the best one, or of log(1 + rows) where that is more.

    So much one word is worth that stands in a single one of `rows` texts. Where the best hit by
    words has less, as in another language than the question's, words say little: the channel keeps
    that share of its weight. Measured: 0.75 to 1.5 times as much moves nDCG@10 by .002 at most.
    """
    most = max(math.log1p(rows), float(scores.max(initial=0.0)))
    return np.asarray(scores / most) if most > 0 else np.zeros(len(scores))


def best_mask(scores: Scores, limit: int, least: float) -> Scores:
    """Mark the `limit` best scores that are above `least`; of equal ones the earlier."""
    kept = np.zeros(len(scores), dtype=bool)
    rows = np.flatnonzero(scores > least)
    kept[rows[np.argsort(-scores[rows], kind="stable")[:limit]]] = True
    return np.asarray(kept)
