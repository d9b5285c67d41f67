"""What has been read of a question over records so far, and how its phrases stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from reasoning.rules.records.phrases import PhraseMatch, is_common
from reasoning.rules.records.schema import RecordSchema

PASSED = ("filler", "list", "most", "least", "hint", "year")
NEAR = 3  # phrases between a number and the field it is of


@dataclass
class RecordReading:
    """Hold what has been read of a question so far; `used` are the places already explained."""

    said: list[PhraseMatch]
    schema: RecordSchema
    where: list[dict[str, Any]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # of the phrases that the conditions are of
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

    def add(self, place: int, name: str, op: str, value: object) -> None:
        """Add the condition that the phrase at a place says."""
        self.where.append({"field": name, "op": op, "value": value})
        self.places.append(place)

    def shared(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the conditions that a share is of, and those of what it is a share of.

        The last one is what is asked, with those that "and" joins to it.
        """
        first = max(self.places, default=0)
        for place in sorted(set(self.places), reverse=True)[1:]:
            if not any(one.is_a("until") for one in self.said[place + 1 : first]):
                break
            first = place
        held = [*zip(self.places, self.where, strict=True)]
        return [one for p, one in held if p >= first], [one for p, one in held if p < first]


def nearest(
    reading: RecordReading, place: int, kinds: Sequence[str], *, back: bool = False
) -> int | None:
    """Return the nearest place of a kind; only marks that carry nothing stand between."""
    way = range(place - 1, -1, -1) if back else range(place + 1, len(reading.said))
    for other in way[:NEAR]:
        one = reading.said[other]
        if one.is_a(*kinds):
            return other
        if not one.is_a(*PASSED) and not is_common(one.text):
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
