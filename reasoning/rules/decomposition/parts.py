"""What a question is taken apart into: cuts, and the steps that they leave."""

from __future__ import annotations

from typing import NamedTuple

from core.types import AnswerKind
from reasoning.planning.slots import SLOT_NAME


class DecompositionStep(NamedTuple):
    """Hold one part; `wants` is None where its own words decide."""

    text: str
    slot: str | None = None
    wants: AnswerKind | None = None


def slot_name(noun: str, taken: set[str]) -> str:
    """Return a slot name made of a noun that is not taken yet, and note it there."""
    letters = "".join(c if c.isalnum() else "_" for c in noun.strip().casefold()).strip("_")
    name = letters[:40] if SLOT_NAME.fullmatch(letters[:40] or "0") else "value"
    number = 2
    unique = name
    while unique in taken:
        unique = f"{name}{number}"
        number += 1
    taken.add(unique)
    return unique


def capitalised(text: str) -> str:
    """Return a text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def asked(text: str, mark: str = "?") -> str:
    """Return a text that ends with a question mark."""
    return f"{text.strip().rstrip('?？.。,，;:! ')}{mark}"
