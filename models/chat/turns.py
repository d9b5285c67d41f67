"""Whose call is next when all slots are taken: callers take turns, however many calls each has."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from models.chat.faults import RunTimeout, ServerBusy
from models.chat.running import POLL_SECONDS
from models.chat.types import ModelCancelled

Ticket = object


class Turns:
    """Let `places` calls run at once and at most `queue` wait; 0 places: as many as come.

    Each owner has a queue of its own, and the queues are served in turn, so that fifty calls of one
    user keep another waiting for one of them, not for all.
    """

    def __init__(self, places: int, queue: int) -> None:
        self._free = places
        self._bounded = places > 0
        self._most = queue
        self._waiting: dict[str, deque[Ticket]] = {}
        self._granted: set[Ticket] = set()
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, owner: str, deadline: float, cancelled: Callable[[], bool]) -> Iterator[None]:
        """Wait for a place and hold it.

        Raises ServerBusy at once when too many wait, RunTimeout at `deadline` (in
        `time.monotonic()` seconds), ModelCancelled soon after `cancelled` says so.
        """
        if not self._bounded:
            yield
            return
        ticket = self._enter(owner)
        try:
            self._wait(ticket, deadline, cancelled)
            yield
        finally:
            self._leave(owner, ticket)

    def _enter(self, owner: str) -> Ticket:
        with self._changed:
            waiting = sum(map(len, self._waiting.values()))
            if not self._free and waiting >= self._most:
                rule = "too many calls wait for the chat model"
                hint = "ask again later; CARREL_LLM_QUEUE and more slots allow more"
                raise ServerBusy(rule, value=waiting, hint=hint)
            ticket = Ticket()
            self._waiting.setdefault(owner, deque()).append(ticket)
            self._grant()
            return ticket

    def _grant(self) -> None:
        while self._free and self._waiting:
            owner = next(iter(self._waiting))
            queue = self._waiting.pop(owner)
            self._granted.add(queue.popleft())
            if queue:
                self._waiting[owner] = queue  # behind all others
            self._free -= 1
        self._changed.notify_all()

    def _wait(self, ticket: Ticket, deadline: float, cancelled: Callable[[], bool]) -> None:
        with self._changed:
            while ticket not in self._granted:
                if cancelled():
                    raise ModelCancelled("the caller gave up while waiting for the chat model")
                left = deadline - time.monotonic()
                if left <= 0:
                    hint = "other callers use the model; CARREL_BUDGET_SECONDS allows more"
                    raise RunTimeout("the run's own time ended before its turn came", hint=hint)
                self._changed.wait(min(left, POLL_SECONDS))

    def _leave(self, owner: str, ticket: Ticket) -> None:
        with self._changed:
            if ticket in self._granted:
                self._granted.remove(ticket)
                self._free += 1
            elif ticket in self._waiting.get(owner, ()):
                self._waiting[owner].remove(ticket)
                if not self._waiting[owner]:
                    del self._waiting[owner]
            self._grant()
