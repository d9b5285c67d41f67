"""A server that keeps failing is left alone for a while (a circuit breaker)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from purgatory import SyncCircuitBreakerFactory
from purgatory.domain.model import HALF_OPENED, OpenedState

from core.errors import ModelError
from models.chat.faults import ModelRefused, RunTimeout
from models.chat.types import ModelCancelled, ModelOverflow, ModelTimeout, ModelUnavailable

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
    def watched(self) -> Iterator[None]:
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
