"""Remembered values in this process's memory: the least recently used go first."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from cachetools import TLRUCache

from core.cache.types import Held

OVERHEAD = 400  # bytes of a key, its place and its time, beside the value


class MemoryStore:
    """Keep at most `entries` values, or values of `size` bytes with their keys in all."""

    def __init__(
        self,
        *,
        entries: int | None = None,
        size: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take one of the two limits; `clock` tells the time of `until`."""
        limit = entries if entries is not None else size
        if limit is None:
            raise TypeError("a store has a limit: entries or size")
        self._lock = Lock()
        self._held: TLRUCache[str, Held] = TLRUCache(
            maxsize=limit,
            ttu=lambda key, held, now: held.until,
            timer=clock,
            getsizeof=None if entries is not None else _size,
        )

    @property
    def entries(self) -> int:
        """Return how many values are held."""
        with self._lock:
            return int(len(self._held))

    def get(self, keys: Sequence[str]) -> list[Held | None]:
        """Return what is held for each key."""
        with self._lock:
            return [self._held.get(key) for key in keys]

    def put(self, values: Mapping[str, bytes], until: float) -> None:
        """Hold values; one that is larger than all the room is left out."""
        for key, value in values.items():
            self.hold(key, Held(value, until))

    def hold(self, key: str, held: Held) -> None:
        """Hold one value."""
        with self._lock:
            try:
                self._held[key] = held
            except (ValueError, KeyError):  # too large for the room; over before it began
                return

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._held.clear()

    def close(self) -> None:
        """Forget everything."""
        self.clear()


def _size(held: Held) -> int:
    return len(held.value) + OVERHEAD
