"""Remembered values in this process's memory, alone or before another store."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from cachetools import TLRUCache

from core.cache.types import CacheStore, Held

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
        """Return how many values are kept."""
        with self._lock:
            return int(len(self._held))

    def get(self, keys: Sequence[str]) -> list[Held | None]:
        """Return the value kept for each key."""
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


class Tiers:
    """Ask this process's memory, then another store."""

    def __init__(self, near: MemoryStore, far: CacheStore) -> None:
        self._near = near
        self._far = far

    @property
    def entries(self) -> int:
        """Return how many values lie in this process's memory."""
        return self._near.entries

    def get(self, keys: Sequence[str]) -> list[Held | None]:
        """Return what either holds for each key; it ends when it would have ended afar."""
        found = self._near.get(keys)
        places = [place for place, held in enumerate(found) if held is None]
        missing = [keys[place] for place in places]
        if not missing:
            return found
        for place, held in zip(places, self._far.get(missing), strict=True):
            if held is not None:
                self._near.hold(keys[place], held)
                found[place] = held
        return found

    def put(self, values: Mapping[str, bytes], until: float) -> None:
        """Hold values in both."""
        self._near.put(values, until)
        self._far.put(values, until)

    def clear(self) -> None:
        """Forget what is near; the far store, of all caches, is cleared by whoever opened it."""
        self._near.clear()

    def close(self) -> None:
        """Forget what is near; the far store is closed by whoever opened it."""
        self._near.close()
