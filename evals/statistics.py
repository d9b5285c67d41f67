"""How sure a mean is, and whether two pipelines differ: resampling of the queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core.settings import Settings

if TYPE_CHECKING:
    Floats = NDArray[np.float64]
else:
    Floats = Any

CONFIDENCE = 0.95  # of the intervals that are given: the usual one

CELLS = 4_000_000  # numbers of one block of resamples, to bound the memory
EQUAL = 1e-12  # a smaller difference is a tie: the metrics are sums of rounded fractions

Interval = tuple[float, float] | None


@dataclass(frozen=True)
class Difference:
    """Compare two pipelines over the same queries; `wins` are queries where the first is higher.

    `p` is two-sided; `interval` is None for a single query, which tells nothing of the spread.
    """

    mean: float
    interval: Interval
    p: float
    wins: int
    ties: int
    losses: int


def intervals(columns: Sequence[Sequence[float]], settings: Settings) -> list[Interval]:
    """Return the percentile bootstrap interval of the mean of each column (Efron 1979).

    Every column holds one value for each of the same queries.
    """
    values = np.array(columns, dtype=np.float64).T
    if len(values) < 2:
        return [None] * len(columns)
    random = np.random.default_rng(settings.evaluation.seed)
    even = np.full(len(values), 1 / len(values))
    # How often each query is drawn says all about a resample, and makes its means one product.
    means = [
        random.multinomial(len(values), even, size=size) @ values / len(values)
        for size in _blocks(settings.evaluation.resamples, len(values))
    ]
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(np.concatenate(means), [tail, 100 - tail], axis=0)
    return [(float(a), float(b)) for a, b in zip(low, high, strict=True)]


def differences(
    first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], settings: Settings
) -> list[Difference]:
    """Compare each column of `first` with the same of `second`, query by query."""
    gaps = np.array(first, dtype=np.float64) - np.array(second, dtype=np.float64)
    gaps[np.abs(gaps) < EQUAL] = 0.0
    bounds = intervals([list(gap) for gap in gaps], settings)
    found = []
    for gap, bound, p in zip(gaps, bounds, _p_values(gaps.T, settings), strict=True):
        wins, losses = int((gap > 0).sum()), int((gap < 0).sum())
        mean = float(gap.mean())
        found.append(Difference(mean, bound, p, wins, len(gap) - wins - losses, losses))
    return found


def _p_values(gaps: Floats, settings: Settings) -> list[float]:
    """Return two-sided p of the paired randomisation test (Smucker et al. 2007), rows = queries.

    Were the pipelines equal, every difference could as well have the other sign. The observed
    signs count as one of the resamples, so p is never 0.
    """
    random = np.random.default_rng(settings.evaluation.seed)
    observed = np.abs(gaps.sum(axis=0)) - EQUAL * len(gaps)
    as_large = np.zeros(gaps.shape[1])
    for size in _blocks(settings.evaluation.resamples, len(gaps)):
        signs = random.integers(0, 2, size=(size, len(gaps)), dtype=np.int8) * 2.0 - 1.0
        as_large += (np.abs(signs @ gaps) >= observed).sum(axis=0)
    return [float(p) for p in (as_large + 1) / (settings.evaluation.resamples + 1)]


def _blocks(total: int, width: int) -> list[int]:
    size = max(1, CELLS // width)
    return [min(size, total - start) for start in range(0, total, size)]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` (0..1) of the values lie, interpolated."""
    return float(np.quantile(np.array(values, dtype=np.float64), share))
