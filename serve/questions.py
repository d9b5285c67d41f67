"""Questions and what their runs yield: one protocol between every wire format and the graph."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import BaseModel, model_validator

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


def storable(value: Any) -> Any:  # noqa: ANN401  # whatever JSON holds
    """Return a JSON value whose texts can be written as UTF-8: JSON may hold half a character."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


class Storable(BaseModel):
    """Be the body of a request, in texts that can be stored and sent."""

    @model_validator(mode="before")
    @classmethod
    def _storable(cls, value: Any) -> Any:  # noqa: ANN401
        try:
            return storable(value)
        except RecursionError:
            raise ValueError("nested too deeply") from None


class Utterance(NamedTuple):
    """One message of a dialogue, and who wrote it."""

    by: Literal["user", "assistant"]
    text: str


def turns_of(messages: Iterable[Utterance]) -> tuple[Turn, ...]:
    """Pair each question with the answer that follows it; what has no pair is left out."""
    turns: list[Turn] = []
    waiting = ""
    for message in messages:
        if message.by == "user":
            waiting = message.text
        elif waiting:
            turns.append(Turn(waiting, message.text))
            waiting = ""
    return tuple(turns)


class AnswerText:
    """Turn the events of a run into pieces of text that only ever go on."""

    def __init__(self) -> None:
        self.shown = ""

    def piece(self, event: RunEvent) -> str:
        """Return the text that a sentence adds; drafts are not shown, since they are unchecked."""
        if event.kind != "sentence":
            return ""
        text = str(event.data.get("text", ""))
        self.shown += text
        return text

    def rest(self, answer: str) -> str:
        """Return the text that the final answer adds to the text already shown.

        An answer that is not what began to be shown (the run stopped while it was written) follows
        whole, after an empty line: what was sent cannot be taken back.
        """
        if answer.startswith(self.shown):
            added = answer[len(self.shown) :]
        else:
            added = f"\n\n{answer}"
        self.shown += added
        return added
