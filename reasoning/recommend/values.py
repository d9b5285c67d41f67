"""Find where a text names values of a field, whatever language it calls them in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from core.types import FieldInfo
from languages.language import known_languages
from reasoning.recommend.roles import cue, tables

# What stands beside a name: no letter, digit or sign of one; Chinese has no marks between words.
EDGES = r"(?<![^\W\u3400-\u9fff])(?<![+#.-])(?:{})(?![+#])(?![^\W\u3400-\u9fff])"
_VERSION = r"(?: ?\d+(?:\.\d+)*\+?)?"
_PARTS = re.compile(r"\s*[,;|/]\s*")
_UNKNOWN = ("", "unknown", "none", "n/a")
_ANY = ("any", "all", "*")


class NamedValue(NamedTuple):
    """Say where a text names what, and by which values the field says so."""

    start: int
    end: int
    name: str
    values: tuple[str, ...]


@cache
def spellings() -> dict[str, re.Pattern[str]]:
    """Return what systems and languages are called, by their names in the tables."""
    found = {name: [f"(?:{one}){_VERSION}"] for name, one in tables()["systems"].items()}
    for name, others in tables()["aliases"].items():
        found[name] = [re.escape(one) for one in (name, *others)]
    for known in known_languages().values():
        for name, pattern in known.read("recommend").get("names", {}).items():
            found.setdefault(name, [re.escape(name)]).append(pattern)
    return {
        name: re.compile(EDGES.format("|".join(patterns)), re.IGNORECASE)
        for name, patterns in found.items()
    }


def find_values(text: str, info: FieldInfo | None, *, systems: bool = False) -> list[NamedValue]:
    """Return where a text names values of a field, the longest at each place, in order.

    With `systems` it finds each operating system, without values where no document names it; what
    runs on any system runs on each.
    """
    known = _names(info.examples if info else (), systems)
    everywhere = known.pop("", [])
    found: list[NamedValue] = []
    for name, values in known.items():
        pattern = spellings().get(name) or re.compile(EDGES.format(re.escape(name)), re.IGNORECASE)
        own = [*values, *everywhere] if name in tables()["systems"] else values
        found += [
            NamedValue(*match.span(), name, tuple(dict.fromkeys(own)))
            for match in pattern.finditer(text)
        ]
    if systems:
        for match in cue("any_system").finditer(text):
            found += [
                NamedValue(*match.span(), name, (*known[name], *everywhere))
                for name in tables()["desktop"]
            ]
    kept: list[NamedValue] = []
    for one in sorted(found, key=lambda one: (one.start - one.end, one.name)):
        if not any(one.start < other.end and other.start < one.end and one[:2] != other[:2]
                   for other in kept):  # fmt: skip
            kept.append(one)
    return sorted(kept)


def _names(examples: Sequence[str], systems: bool) -> dict[str, list[str]]:
    """Return the values of a field by what they name, under "" those of what runs anywhere."""
    found: dict[str, list[str]] = {name: [] for name in tables()["systems"]} if systems else {}
    for value in examples:
        for part in dict.fromkeys([value, *_PARTS.split(value)]):
            low = part.casefold()
            if low in _UNKNOWN:
                continue
            anywhere = systems and (low in _ANY or cue("any_system").search(part) is not None)
            found.setdefault("" if anywhere else _name_of(part, systems), []).append(value)
    return found


def _name_of(value: str, systems: bool) -> str:
    """Return what a value names: "Windows 10" is Windows, and "python" is Python."""
    for name, pattern in spellings().items():
        whole = name not in tables()["systems"]
        if (pattern.fullmatch if whole else pattern.search)(value) and (whole or systems):
            return name
    return value


def joined(text: str, found: Sequence[NamedValue]) -> list[list[NamedValue]]:
    """Group what stands in one list of a text: "Linux, macOS or Windows"."""
    groups: list[list[NamedValue]] = [[one] for one in found[:1]]
    for one, other in pairwise(found):
        if one.end <= other.start and not cue("joins").fullmatch(text[one.end : other.start]):
            groups.append([])
        groups[-1].append(other)
    return groups


def is_choice(text: str, group: Sequence[NamedValue]) -> bool:
    """Tell whether any of a list will do; otherwise all of it must be so."""
    return any(cue("either").search(text[one.end : other.start]) for one, other in pairwise(group))
