"""Who sees the runs of a server from outside: limits, the audit log, traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from core.auth import AuthContext
from core.trace import RunRecord, Step


class Note(Protocol):
    """Follow one run, on the thread that it runs on."""

    def step(self, step: Step) -> None:
        """Hear of a step after it was made and before its caller does."""

    def speaks(self) -> None:
        """Hear that the first text of the answer is about to be sent."""

    def ended(self, run: RunRecord | None) -> None:
        """Hear the end before the caller does, None when there is no answer; may raise."""


class Watcher(Protocol):
    """Decide whether a run may begin, and follow it."""

    async def admit(self, auth: AuthContext) -> Note:
        """Return what follows the run; raises a CarrelError, such as LimitExceeded."""


class Unwatched:
    """Follow a run without doing anything."""

    def step(self, step: Step) -> None:
        """Do nothing."""

    def speaks(self) -> None:
        """Do nothing."""

    def ended(self, run: RunRecord | None) -> None:
        """Do nothing."""


class Notes:
    """Tell several that follow a run, in their order."""

    def __init__(self, notes: Sequence[Note]) -> None:
        self._notes = notes
        self._spoken = False

    def step(self, step: Step) -> None:
        """Tell all of them."""
        for note in self._notes:
            note.step(step)

    def speaks(self) -> None:
        """Tell all of them, once."""
        if self._spoken:
            return
        self._spoken = True
        for note in self._notes:
            note.speaks()

    def ended(self, run: RunRecord | None) -> None:
        """Tell all of them."""
        for note in self._notes:
            note.ended(run)


class Watchers:
    """Have several watch every run; without any, runs are just run."""

    def __init__(self, watchers: Sequence[Watcher] = ()) -> None:
        """Ask them in this order."""
        self._watchers = watchers

    async def admit(self, auth: AuthContext) -> Notes:
        """Return what follows a run that all of them let begin."""
        return Notes([await watcher.admit(auth) for watcher in self._watchers])
