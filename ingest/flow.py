"""Steps of work on threads of their own, each a few items ahead of the next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import Empty, Full, Queue
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")

_POLL_S = 0.1


class Step(Generic[T, U]):
    """Apply `work` to each item on a thread and hand the results on in order.

    At most `ahead` results wait to be taken. What `items` or `work` raise is raised where the
    results are taken. Use as a context manager: leaving it ends the thread.
    """

    def __init__(self, items: Iterator[T], work: Callable[[T], U], *, ahead: int = 1) -> None:
        """Take `items` on the thread alone, which starts with the context."""
        self._items = items
        self._work = work
        self._ready: Queue[tuple[U] | BaseException | None] = Queue(ahead)
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"ingest-{work.__name__}", daemon=True
        )

    def __enter__(self) -> Iterator[U]:
        """Start the thread and return its results."""
        self._thread.start()
        return self._results()

    def __exit__(self, *error: object) -> None:
        """End the thread after what it is doing now."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            for item in self._items:
                if self._stop.is_set() or not self._hand_on((self._work(item),)):
                    return
            self._hand_on(None)
        except BaseException as error:  # it is raised where the results are taken
            self._hand_on(error)

    def _hand_on(self, result: tuple[U] | BaseException | None) -> bool:
        while not self._stop.is_set():
            try:
                self._ready.put(result, timeout=_POLL_S)
            except Full:
                continue
            return True
        return False

    def _results(self) -> Iterator[U]:
        while not self._stop.is_set():
            try:
                result = self._ready.get(timeout=_POLL_S)
            except Empty:
                continue
            if result is None:
                return
            if isinstance(result, BaseException):
                raise result
            yield result[0]
