"""Chat messages of any wire format as the turns of a dialogue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from reasoning.types import Turn


class Said(NamedTuple):
    """Hold what one of the two said."""

    by: Literal["user", "assistant"]
    text: str


def turns_of(messages: Iterable[Said]) -> tuple[Turn, ...]:
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
