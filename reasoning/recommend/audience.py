"""Read whom a thing is for: children, beginners, specialists, by words of every language."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from core.types import FieldInfo
from languages.language import known_languages
from reasoning.recommend.roles import cue
from reasoning.recommend.values import find_values

AUDIENCE = "audience"
EVERYBODY = "all"


class Audience(NamedTuple):
    """Say where a need names whom a thing is for, of which kind they are, and by which values."""

    start: int
    end: int
    kind: str
    values: tuple[str, ...]


@cache
def _kinds() -> dict[str, tuple[re.Pattern[str], re.Pattern[str]]]:
    """Return for each kind what a value of it says, and how a text says that it is for them."""
    own: dict[str, list[str]] = {}
    meant: dict[str, list[str]] = {}
    for known in known_languages().values():
        words = known.read("recommend")
        for kind, pattern in words.get("audiences", {}).items():
            own.setdefault(kind, []).append(pattern)
            before, after = words["before_audience"], words["after_audience"]
            meant.setdefault(kind, []).append(f"{before}(?:{pattern})|(?:{pattern})(?={after})")
    ways = re.IGNORECASE
    return {kind: (re.compile("|".join(own[kind]), ways), re.compile("|".join(meant[kind]), ways))
            for kind in own}  # fmt: skip


def kind_of(value: str) -> str | None:
    """Return the kind that a value of a field names first in the order of the tables."""
    return next((kind for kind, (pattern, _) in _kinds().items() if pattern.search(value)), None)


def is_for(kind: str, text: str) -> bool:
    """Tell whether a text says that it is for readers of a kind."""
    return kind in _kinds() and _kinds()[kind][1].search(text) is not None


def find_audience(text: str, info: FieldInfo | None) -> Audience | None:
    """Return whom a need is for, None where it says nothing: the first kind that it names.

    A value of no known kind is meant where the need says "for" before it.
    """
    examples = info.examples if info else ()
    for kind, (_, meant) in _kinds().items():
        match = meant.search(text)
        if match is not None:
            values = [one for one in examples if kind_of(one) in (kind, EVERYBODY)]
            return Audience(*match.span(), kind, tuple(values))
    for one in find_values(text, info):
        if before := list(cue("before_audience").finditer(text[: one.start])):
            if before[-1].end() == one.start:
                return Audience(before[-1].start(), one.end, one.name, one.values)
    return None
