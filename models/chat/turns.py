"""Who may call a server now: its turn, its slot, and a breaker that leaves a failing server alone.

A slot keeps the last prompt and answers the same beginning faster the next time. Between two users
that would tell one of them, by the time it takes, what the other has asked; so a warm slot
serves its last owner only.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from purgatory import SyncCircuitBreakerFactory
from purgatory.domain.model import HALF_OPENED, OpenedState

from core.errors import ModelError
from models.chat.running import POLL_SECONDS
from models.chat.types import (
    ModelCancelled,
    ModelOverflow,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    RunTimeout,
    ServerBusy,
)


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
    def lease(self, owner: str) -> Iterator[Lease]:
        """Lend the owner's own idle slot, else the idle one unused for longest, else none."""
        slot = self._take(owner)
        if slot is None:
            with self._afloat():
                yield Lease(None, use_cache=not owner)
            return
        epoch = self._epoch
        warm = slot.owner == owner and slot.epoch == epoch and not self._floating
        slot.owner = None  # a request that fails may not have reached the slot
        try:
            yield Lease(self._slots.index(slot), use_cache=warm)
            slot.owner, slot.epoch = owner, epoch
        finally:
            with self._lock:
                self._clock += 1
                slot.busy, slot.used = False, self._clock

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
    def take_turn(
        self, owner: str, deadline: float, cancelled: Callable[[], bool]
    ) -> Iterator[None]:
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
                hint = "ask again later; CARREL_LLM__QUEUE and more slots allow more"
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
                    hint = "other callers use the model; CARREL_BUDGET__SECONDS allows more"
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


# Both chosen, not measured.
BREAKER_FAILURES = 5  # failed calls in a row after which the server is left alone
BREAKER_SECONDS = 15  # how long it is left alone before one call tries again

FAILURES = (ModelUnavailable, ModelTimeout)
NO_VERDICT = (ModelOverflow, ModelCancelled, RunTimeout)  # these say nothing about the server


class Breaker:
    """Let calls pass until `failures` in a row failed; after `seconds` let one call try again.

    Only calls that found no server or no answer in time are failures.
    """

    def __init__(self, url: str, failures: int, seconds: float) -> None:
        self.url = url
        self.seconds = seconds
        self._lock = threading.Lock()
        self._trying = False
        self._circuit = SyncCircuitBreakerFactory(failures, seconds).get_breaker(url)

    @property
    def is_open(self) -> bool:
        """Tell whether calls fail at once."""
        return self._circuit.context.state == "opened"

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Judge the server by the call made inside.

        Raises ModelUnavailable at once while the server is left alone.
        """
        trial = self._admit()
        try:
            yield
        except ModelError as error:
            if not isinstance(error, NO_VERDICT):
                failed = isinstance(error, FAILURES) and not isinstance(error, ModelRefused)
                self._judge(error if failed else None)
            raise
        else:
            self._judge(None)
        finally:
            if trial:
                self._trying = False

    def _admit(self) -> bool:
        with self._lock:
            try:
                self._circuit.__enter__()
            except OpenedState:
                self._reject()
            if self._circuit.context.state != HALF_OPENED:
                return False
            if self._trying:
                self._reject()
            self._trying = True
            return True

    def _reject(self) -> None:
        raise ModelUnavailable(
            f"the model server failed too often and is left alone for {self.seconds:g} s",
            value=self.url,
            hint="look at the server with `carrel llm status`; the rules decide meanwhile",
        ) from None

    def _judge(self, error: Exception | None) -> None:
        with self._lock:
            self._circuit.__exit__(type(error) if error else None, error, None)


@lru_cache(maxsize=64)
def server_breaker(url: str, failures: int, seconds: float) -> Breaker:
    """Return the breaker that all calls of this process to one server share."""
    return Breaker(url, failures, seconds)
