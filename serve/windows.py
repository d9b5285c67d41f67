"""Counts of what was done in the last minute, in a window that moves."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter


class _Rate(RateLimitItemPerMinute):
    """Count in one window whatever the limit, so that a changed one holds for what was done."""

    def key_for(self, *identifiers: bytes | str | float) -> str:
        return "/".join([self.namespace, *(str(one) for one in identifiers)])


@dataclass(frozen=True)
class Standing:
    """Say how much of a limit is left; `reset` is in seconds until the oldest no longer counts."""

    allowed: bool
    limit: int
    remaining: int
    reset: int


class Windows:
    """Count by name and owner within the last minute, in this process."""

    def __init__(self) -> None:
        """Begin at zero."""
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    async def hit(self, name: str, owner: tuple[str, ...], limit: int) -> Standing:
        """Count one, unless that is more than `limit` in a minute, and say what is left."""
        item = _Rate(limit, namespace=name)
        allowed = self._limiter.hit(item, *owner)
        return self._standing(item, owner, allowed=allowed)

    async def look(self, name: str, owner: tuple[str, ...], limit: int) -> Standing:
        """Say what is left without counting."""
        item = _Rate(limit, namespace=name)
        return self._standing(item, owner, allowed=self._limiter.test(item, *owner))

    def _standing(self, item: _Rate, owner: tuple[str, ...], *, allowed: bool) -> Standing:
        stats = self._limiter.get_window_stats(item, *owner)
        seconds = max(1, math.ceil(stats.reset_time - time.time()))
        return Standing(allowed, item.amount, max(0, stats.remaining), seconds)
