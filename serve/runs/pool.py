"""Worker threads that callers share fairly: whoever has least running is next."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from serve.errors import Busy

RETRY_SECONDS = 2  # when a caller who is turned away should try again

Owner = tuple[str, str]  # tenant and user
Work = Callable[[], None]


@dataclass(frozen=True)
class PoolLimits:
    """Limit a pool: threads, and waiting works, of all callers and of each one of them.

    `per_caller_shared` is how many one caller may have begun while others are there.
    """

    threads: int
    per_caller: int
    per_caller_shared: int
    waiting: int
    waiting_per_caller: int


@dataclass(eq=False)
class Ticket:
    """Name one piece of work, to take it back while it waits; `dropped` hears if it never runs."""

    owner: Owner
    work: Work
    dropped: Callable[[Busy], None]
    number: int  # the order of arrival


@dataclass
class _Line:
    waiting: deque[Ticket] = field(default_factory=deque)
    running: int = 0
    turn: int = 0  # when this caller was last served, or came


class FairPool:
    """Run works on a bounded number of threads, which start when first needed.

    A caller who sends many waits behind themselves: the next work is that of the caller with the
    fewest running, and among those the one who was served, or came, longest ago. While anyone else
    is there, at work or waiting, a caller begins no more than a share, even on free threads: these
    share the processor and the model with the others.
    """

    def __init__(self, name: str, limits: PoolLimits) -> None:
        self._name = name
        self._limits = limits
        self._lines: dict[Owner, _Line] = {}
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._turn = 0
        self._arrived = 0
        self._waiting = 0
        self._running = 0
        self._closing = False

    @property
    def load(self) -> tuple[int, int]:
        """Return how many works run and how many wait."""
        with self._changed:
            return self._running, self._waiting

    @property
    def threads(self) -> int:
        """Return how many threads there may be."""
        return self._limits.threads

    def use(self, limits: PoolLimits) -> None:
        """Keep to other limits; what waits and runs goes on."""
        with self._changed:
            self._limits = limits
            self._changed.notify_all()

    def submit(self, owner: Owner, work: Work, dropped: Callable[[Busy], None]) -> Ticket:
        """Have `work`, which must not raise, run on a thread soon; raises Busy."""
        limits = self._limits
        with self._changed:
            if self._closing:
                raise self._stopping()
            line = self._lines.get(owner) or _Line(
                turn=self._turn - 1
            )  # before whoever is served now
            # Counted together: a work that a free thread has not taken yet is not in anyone's way.
            owned = line.running + len(line.waiting)
            if owned >= limits.per_caller + limits.waiting_per_caller:
                rule = f"one caller has at most {limits.waiting_per_caller} requests waiting"
                raise Busy(rule, retry_after=RETRY_SECONDS, of_caller=True)
            if self._running + self._waiting >= limits.threads + limits.waiting:
                rule = f"at most {limits.waiting} requests wait"
                raise Busy(rule, retry_after=RETRY_SECONDS)
            self._arrived += 1
            ticket = Ticket(owner, work, dropped, self._arrived)
            self._lines[owner] = line
            line.waiting.append(ticket)
            self._waiting += 1
            if self._waiting > self._idle and len(self._threads) < limits.threads:
                self._start()
            self._changed.notify_all()
        return ticket

    def withdraw(self, ticket: Ticket) -> bool:
        """Take back a work that waits; False when it runs or has run."""
        with self._changed:
            line = self._lines.get(ticket.owner)
            if line is None or ticket not in line.waiting:
                return False
            line.waiting.remove(ticket)
            self._waiting -= 1
            self._forget(ticket.owner, line)
            self._changed.notify_all()
            return True

    def close(self) -> None:
        """Take no more work; what waits is dropped, what runs goes on."""
        with self._changed:
            self._closing = True
            left = [ticket for line in self._lines.values() for ticket in line.waiting]
            self._lines = {owner: line for owner, line in self._lines.items() if line.running}
            for line in self._lines.values():
                line.waiting.clear()
            self._waiting = 0
            self._changed.notify_all()
        for ticket in left:
            ticket.dropped(self._stopping())

    def join(self, seconds: float) -> bool:
        """Wait until the threads of a closed pool have ended; False when some have not."""
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _stopping(self) -> Busy:
        return Busy("the server is stopping", retry_after=RETRY_SECONDS)

    def _start(self) -> None:
        name = f"{self._name}-{len(self._threads)}"
        thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                self._changed.wait_for(lambda: self._closing or self._next() is not None)
                self._idle -= 1
                owner = self._next()
                if owner is None:
                    return
                line = self._lines[owner]
                ticket = line.waiting.popleft()
                self._waiting -= 1
                self._running += 1
                line.running += 1
                self._turn += 2
                line.turn = self._turn
            try:
                ticket.work()
            finally:
                with self._changed:
                    self._running -= 1
                    line.running -= 1
                    self._forget(owner, line)
                    self._changed.notify_all()

    def _next(self) -> Owner | None:
        alone = len(self._lines) == 1
        most = self._limits.per_caller if alone else self._limits.per_caller_shared
        ready = [
            (line.running, line.turn, line.waiting[0].number, owner)
            for owner, line in self._lines.items()
            if line.waiting and line.running < most
        ]
        return min(ready)[-1] if ready else None

    def _forget(self, owner: Owner, line: _Line) -> None:
        if not line.running and not line.waiting:
            self._lines.pop(owner, None)
