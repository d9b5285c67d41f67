"""What has been read of a question over records so far, and how its phrases stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from reasoning.rules.record_phrases import Said, is_common
from reasoning.rules.record_schema import RecordSchema

NEAR = 3  # phrases between a number and the field it is of


@dataclass
class RecordReading:
    """Hold what has been read of a question so far; `used` are the places already explained."""

    said: list[Said]
    schema: RecordSchema
    where: list[dict[str, Any]] = field(default_factory=list)
    used: set[int] = field(default_factory=set)
    shown: list[str] = field(default_factory=list)
    order: tuple[str, bool] | None = None
    limit: int | None = None
    groups: str | None = None
    characters: int = 0
    aggregate: str = "list"
    adds: str | None = None
    named: bool = False
    sure: bool = True
    passed_over: int = 0


def nearest(
    reading: RecordReading, place: int, kinds: Sequence[str], *, back: bool = False
) -> int | None:
    """Return the nearest place of a kind; only marks that carry nothing stand between."""
    step = -1 if back else 1
    for distance in range(1, NEAR + 1):
        other = place + step * distance
        if not 0 <= other < len(reading.said):
            return None
        one = reading.said[other]
        if one.is_a(*kinds):
            return other
        if not one.is_a("filler", "list", "most", "least", "hint", "year") and not is_common(
            one.text
        ):
            return None
    return None


def is_negated(reading: RecordReading, place: int) -> bool:
    """Tell whether a phrase is denied, which explains the word that denies it."""
    near = nearest(reading, place, ("not",), back=True)
    if near is None or near in reading.used:
        return False
    reading.used.add(near)
    return True


def has(reading: RecordReading, *kinds: str) -> bool:
    """Tell whether any phrase is of one of these kinds."""
    return any(one.is_a(*kinds) for one in reading.said)


def condition(name: str, op: str, value: object) -> dict[str, Any]:
    """Return the condition on a field as the tool takes it."""
    return {"field": name, "op": op, "value": value}
