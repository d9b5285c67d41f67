"""Until when the work of now may go on: the deadline of the run, search or request it belongs to.

It is kept with the context of the caller, so that a statement deep inside a store finds it. Work
without a waiting caller (ingest, doctor, backup) has none and is not cut.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from core.errors import CallerError


class TimeUpError(CallerError):
    """Say that the caller's time was used up before a read had ended."""

    retryable = True


@dataclass(frozen=True)
class TimeLimit:
    """Hold when the time is up, by `time.monotonic()`, and what to say then."""

    until: float = math.inf
    rule: str = "the time of this request is used up (budget.seconds)"
    hint: str = "ask for less, or raise the setting"

    def is_up(self) -> bool:
        """Tell whether the time is used up."""
        return time.monotonic() > self.until

    def error(self) -> TimeUpError:
        """Return what to raise when it is."""
        return TimeUpError(self.rule, hint=self.hint)


_ENDLESS = TimeLimit()
_current: ContextVar[TimeLimit] = ContextVar("time_limit", default=_ENDLESS)


def current_limit() -> TimeLimit:
    """Return the limit of what runs now, an endless one where there is none."""
    return _current.get()


@contextmanager
def limited_time(limit: TimeLimit) -> Iterator[TimeLimit]:
    """Limit the time of reads inside the block; of two limits the sooner one counts."""
    sooner = min(limit, _current.get(), key=lambda one: one.until)
    token = _current.set(sooner)
    try:
        yield sooner
    finally:
        _current.reset(token)
