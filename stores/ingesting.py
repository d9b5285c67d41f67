"""Long work on a store, one after the other; asking and searching go on beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

POLL_S = 0.2


class Ingesting:
    """A lock that says who holds it; a thread that holds it may take it again."""

    def __init__(self) -> None:
        """Begin idle."""
        self._lock = threading.RLock()
        self._work = ""

    @contextmanager
    def turn(self, work: str, waiting: Callable[[str], None]) -> Iterator[None]:
        """Hold the lock for a work of this name.

        While another is at work, `waiting` is called with its name again and again; what it raises
        ends the wait.
        """
        while not self._lock.acquire(timeout=POLL_S):
            waiting(self._work or "other work")
        before, self._work = self._work, work
        try:
            yield
        finally:
            self._work = before
            self._lock.release()

    def __enter__(self) -> Ingesting:
        self._lock.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.release()
