"""Observers of a server's runs: limits, the audit log, traces."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from core.auth import AuthContext
from core.errors import InUseError
from core.trace import RunRecord, Step
from stores.coordination import Coordination


class RunObserver:
    """Callbacks of one run, called on the thread that it runs on; here they do nothing."""

    def on_step(self, step: Step) -> None:
        """Take a step, before the caller is sent it."""

    def on_first_text(self) -> None:
        """Called before the first text of the answer is sent."""

    def on_end(self, run: RunRecord | None) -> None:
        """Called before the caller is sent the end; None when there is no answer. May raise."""


class RunGate(Protocol):
    """Decide whether a run may begin, and observe it."""

    async def admit(self, auth: AuthContext) -> RunObserver:
        """Return the observer of the run; raises a CarrelError, such as LimitExceeded."""


class RunObservers(RunObserver):
    """Pass every event of a run to several observers, in their order."""

    def __init__(self, observers: Sequence[RunObserver]) -> None:
        self._observers = observers
        self._spoken = False

    def on_step(self, step: Step) -> None:
        """Tell all of them."""
        for observer in self._observers:
            observer.on_step(step)

    def on_first_text(self) -> None:
        """Tell all of them, once."""
        if self._spoken:
            return
        self._spoken = True
        for observer in self._observers:
            observer.on_first_text()

    def on_end(self, run: RunRecord | None) -> None:
        """Tell all of them."""
        for observer in self._observers:
            observer.on_end(run)


Key = tuple[str, str, str]


class Claims:
    """Let one request at a time have a conversation.

    A claim is the caller's own, so that nobody can hold another's conversation or learn of it.
    """

    def __init__(self, coordination: Coordination | None = None) -> None:
        """Claim among the threads of this process, and of others where there are any."""
        self._lock = threading.Lock()
        self._claimed: set[Key] = set()
        self._coordination = coordination or Coordination()

    def take(self, auth: AuthContext, name: str) -> Callable[[], None]:
        """Claim a conversation and return what gives it back; raises InUseError."""
        key = (auth.tenant, auth.user, name)
        shared = f"talk.{key}"
        with self._lock:
            if key in self._claimed or not self._coordination.acquire(shared):
                raise InUseError(
                    "a conversation has one request at a time",
                    value=name,
                    hint="wait until its last question is answered, or begin another one",
                )
            self._claimed.add(key)

        def give_back() -> None:
            with self._lock:
                if key in self._claimed:
                    self._claimed.discard(key)
                    self._coordination.release(shared)

        return give_back

    @contextmanager
    def hold(self, auth: AuthContext, name: str) -> Iterator[None]:
        """Hold a conversation while the block works on it; raises InUseError."""
        give_back = self.take(auth, name)
        try:
            yield
        finally:
            give_back()
