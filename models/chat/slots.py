"""The slots of a llama-server: who gets which, and when its prompt cache may be used.

A slot keeps the last prompt and answers the same beginning faster the next time. Between two users
that would tell one of them, by the time it takes, what the other has asked; so a warm slot
serves its last owner only.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Lease:
    """Say how a request may use the server: its slot, if it has one to itself, and the cache."""

    slot: int | None
    use_cache: bool


@dataclass(eq=False)
class _Slot:
    owner: str | None = None  # None: unknown, so it is warm for nobody
    busy: bool = False
    used: int = 0
    epoch: int = 0


class SlotPool:
    """Lend the slots of one server to the calls of this process; `count` 0: none can be named.

    A request without a slot is put into any by the server, so it ends an epoch: what slots held
    before and while it ran is no longer known.
    """

    def __init__(self, count: int) -> None:
        self._slots = [_Slot() for _ in range(count)]
        self._lock = threading.Lock()
        self._clock = 0
        self._epoch = 0
        self._floating = 0

    @contextmanager
    def leased(self, owner: str) -> Iterator[Lease]:
        """Lend the owner's own idle slot, else the idle one unused for longest, else none."""
        slot = self._take(owner)
        if slot is None:
            with self._afloat():
                yield Lease(None, use_cache=not owner)
            return
        epoch, warm = self._epoch, self._is_warm(slot, owner)
        slot.owner = None  # a request that fails may not have reached the slot
        try:
            yield Lease(self._slots.index(slot), use_cache=warm)
            slot.owner, slot.epoch = owner, epoch
        finally:
            with self._lock:
                self._clock += 1
                slot.busy, slot.used = False, self._clock

    def _is_warm(self, slot: _Slot, owner: str) -> bool:
        return slot.owner == owner and slot.epoch == self._epoch and not self._floating

    def _take(self, owner: str) -> _Slot | None:
        with self._lock:
            idle = [slot for slot in self._slots if not slot.busy]
            own = [slot for slot in idle if slot.owner == owner]
            if not idle:
                return None
            newest = max(own, key=lambda slot: slot.used) if own else None
            slot = newest or min(idle, key=lambda slot: slot.used)
            slot.busy = True
            return slot

    @contextmanager
    def _afloat(self) -> Iterator[None]:
        with self._lock:
            self._floating += 1
            self._epoch += 1
        try:
            yield
        finally:
            with self._lock:
                self._floating -= 1
                self._epoch += 1
