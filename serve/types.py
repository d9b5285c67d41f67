"""What HTTP routes ask for and get: one protocol between every wire format and the graph."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from core.auth import AuthContext
from core.trace import RunRecord
from graph.context import PipelineName
from reasoning.types import Turn

EventKind = Literal["step", "sentence", "token", "rules", "result"]


@dataclass(frozen=True)
class Question:
    """Hold one question of a verified caller; nothing in it says who asks.

    `conversation` is the id of one of the caller's, which has its own history and collection; the
    run may end by asking back with `clarify`. `collection` may be several names joined by commas,
    `where` are filters.
    """

    text: str
    collection: str = "default"
    history: tuple[Turn, ...] = ()
    pipeline: PipelineName = "auto"
    conversation: str = ""
    clarify: bool = False
    where: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunEvent:
    """Hold one thing that happened in a run.

    `data` is a `Step` as JSON, a piece of the answer (`{"text": …}`), of an unverified draft, or at
    the end, once, the result as `carrel ask --json` prints it.
    """

    kind: EventKind
    data: dict[str, Any]


class Runner(Protocol):
    """Run questions outside of the event loop, a bounded number of them at once."""

    async def run(self, question: Question, auth: AuthContext) -> RunRecord:
        """Return the finished run; raises a CarrelError, `Busy` when too many wait."""

    def stream(self, question: Question, auth: AuthContext) -> AsyncIterator[RunEvent]:
        """Yield what happens; closing the iterator cancels the run and frees its slot."""
