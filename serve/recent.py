"""The latest values of something that is measured again and again, for percentiles."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class Recent:
    """Count all values and keep the latest; bounded, so that a long life costs no memory."""

    def __init__(self, size: int) -> None:
        """Keep the latest `size` values."""
        self.count = 0
        self._values: deque[float] = deque(maxlen=size)

    def add(self, value: float) -> None:
        """Take a value; callers of several threads hold a lock."""
        self.count += 1
        self._values.append(value)

    def percentiles(self, wanted: Iterable[int]) -> dict[int, float | None]:
        """Return percentiles of the latest values (nearest rank), None when there are none."""
        ordered = sorted(self._values)
        last = len(ordered) - 1
        return {
            percent: round(ordered[round(last * percent / 100)], 3) if ordered else None
            for percent in wanted
        }
