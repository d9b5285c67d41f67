"""Two stores as one: what is near is asked first, and learns what the far one knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.cache.memory import MemoryStore
from core.cache.types import CacheStore, Held


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
