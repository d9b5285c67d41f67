"""Count lengths without keeping them: memory grows with the longest, not with how many."""

from __future__ import annotations

from collections import Counter

from ingest.quality.types import Spread


class Lengths:
    """Count how often each length occurs."""

    def __init__(self, step: int, bars: int) -> None:
        """Draw `bars` bars, each `step` wide; the last one has all that is longer."""
        self._step, self._bars = step, bars
        self._counts: Counter[int] = Counter()

    def add(self, length: int) -> None:
        """Count one length."""
        self._counts[length] += 1

    def spread(self) -> Spread:
        """Return how the lengths spread."""
        total = self._counts.total()
        if not total:
            return Spread()
        bars = [0] * self._bars
        for length, count in self._counts.items():
            bars[min(length // self._step, self._bars - 1)] += count
        edges = [place * self._step for place in range(self._bars + 1)]
        longest = max(self._counts)
        edges[-1] = max(edges[-1], longest + 1)
        return Spread(
            count=total,
            least=min(self._counts),
            median=self._median(total),
            mean=round(sum(k * n for k, n in self._counts.items()) / total, 1),
            most=longest,
            bars=list(zip(edges, edges[1:], bars, strict=False)),
        )

    def _median(self, total: int) -> int:
        seen = 0
        for length in sorted(self._counts):
            seen += self._counts[length]
            if 2 * seen >= total:
                return length
        return 0
