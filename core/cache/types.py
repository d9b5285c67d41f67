"""Where remembered values lie: the protocol of all stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol


class Held(NamedTuple):
    """Hold one remembered value, good until a time of `time.time()`."""

    value: bytes
    until: float


class CacheStore(Protocol):
    """Keep bytes by key for a time; safe to share between threads. Never raises for a lost one."""

    @property
    def entries(self) -> int:
        """Return how many values lie in this process's memory."""

    def get(self, keys: Sequence[str]) -> list[Held | None]:
        """Return the value kept for each key, None for what is absent or expired."""

    def put(self, values: Mapping[str, bytes], until: float) -> None:
        """Hold values until a time of `time.time()`, or until others need the room."""

    def clear(self) -> None:
        """Forget everything that this data directory holds."""

    def close(self) -> None:
        """Let go of connections and memory."""
