"""Read which licences a need allows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import CallerError
from core.types import FieldInfo
from reasoning.recommend.roles import (
    CLASSES,
    FREE,
    LicenceClass,
    class_of_licence,
    cue,
    denied_of,
    is_apart,
    is_denied,
    licences,
    with_marks,
)

_KINDS: dict[str, frozenset[LicenceClass]] = {
    "permissive": frozenset({"permissive"}),
    "copyleft": frozenset({"copyleft", "weak"}),
    "free": FREE,
    "closed": frozenset({"closed"}),
}
_NAME = re.compile(r" (?![Ll]icen)[A-Z][a-z]")  # "Apache Spark" is no licence
_TOKEN = re.compile(r"[a-z]+|\d+(?:\.\d+)?")


@dataclass(frozen=True)
class LicenceWish:
    """Hold the values of a field that a need allows, what it says, and where."""

    wanted: str
    values: list[str]
    spans: list[tuple[int, int]]


def read_licence(text: str, info: FieldInfo | None) -> LicenceWish | None:
    """Return what a need says of licences, None for nothing.

    Kinds must hold together unless "or" joins them; of licences that are named any will do. Raises
    CallerError where no licence can be all of it.
    """
    classes = [(match, name) for name in _KINDS for match in cue(name).finditer(text)]
    ways = re.IGNORECASE | re.ASCII  # no Chinese character is a part of a name
    named = [*re.finditer(licences()["named"], text, ways)]
    sure = bool(named) or cue("licence").search(text) is not None
    pattern = f"{licences()['named']}|{licences()['beside']}"
    named = [
        one
        for one in re.finditer(pattern, text, ways)
        if (sure or _is_under(text, one) or (info and is_apart(text, *one.span())))
        and not _NAME.match(text[one.end() :])
    ]
    if not classes and not named:
        return None
    chain = denied_of(text, [match.span() for match in named])
    denied = [match for match, no in zip(named, chain, strict=True) if no]
    asked = [match[0] for match in named if match not in denied]
    kinds = _allowed(text, classes)
    fitting = [one for one in asked if class_of_licence(one) in (*kinds, None)]
    if not kinds or (asked and not fitting):
        shown = ", ".join([*(match[0] for match, _ in classes), *asked])
        raise CallerError("a need must not contradict itself", value=shown,
                          hint="no licence is all of it; say which will do, with “or”")  # fmt: skip
    bound = bool(classes)
    values = [
        value
        for value in (info.examples if info else ())
        if (not bound or class_of_licence(value) in kinds)
        and (not asked or any(_is_named(value, one) for one in fitting))
        and not any(_is_named(value, match[0], denied=True) for match in denied)
    ]
    matches = sorted([*(match for match, _ in classes), *named], key=lambda one: one.start())
    spans = [with_marks(text, *one.span()) for one in [*matches, *cue("licence").finditer(text)]]
    wanted = [
        f"not {one[0]}" if one in denied or is_denied(text, one.start()) else one[0]
        for one in matches
    ]
    return LicenceWish(", ".join(wanted), values, spans)


def _is_under(text: str, match: re.Match[str]) -> bool:
    """Tell whether a name stands for a licence: "under BSD", and not "with Apache Spark"."""
    ends = re.match(r"\s*(?:$|[^\w\s])", text[match.end() :]) is not None
    return ends and cue("before_licence").search(text[: match.start()]) is not None


def _allowed(text: str, classes: Sequence[tuple[re.Match[str], str]]) -> set[LicenceClass]:
    """Return the classes that fit the kinds that a need names."""
    allowed = set(CLASSES)
    ordered = sorted(classes, key=lambda one: one[0].start())
    for place, (match, name) in enumerate(ordered):
        kinds = _KINDS[name]
        if is_denied(text, match.start()):
            allowed -= kinds
            continue
        between = text[ordered[place - 1][0].end() : match.start()] if place else ""
        allowed = allowed | kinds if cue("either").search(between) else allowed & kinds
    return allowed


def _is_named(value: str, name: str, *, denied: bool = False) -> bool:
    """Tell whether a value is the licence of a name, each of several; `denied` if any may be.

    Who does not want GPL does not want AGPL.
    """
    if not denied and class_of_licence(value) != class_of_licence(name):
        return False  # "FSL-1.1-MIT"
    plain = re.sub(r"v(?=\d)", " ", name.casefold())  # "GPLv3"
    words = [one for one in _TOKEN.findall(plain) if one not in ("license", "licence")]
    parts = re.split(r"\s+/\s+|\s+and\s+", value, flags=re.IGNORECASE)
    has = [all(_has(part.casefold(), word, denied) for word in words) for part in parts]
    return any(has) if denied else all(has)


def _has(value: str, word: str, within: bool) -> bool:
    if word[0].isdigit():
        number = word.removesuffix(".0")
        return re.search(rf"(?<![\d.]){re.escape(number)}(?:\.0)?(?!\d)", value) is not None
    if within:
        return word in value
    # "GPL-2.0+" and "GPLv3" are GPL, and AGPL is not, nor is MIT-0 the MIT licence.
    return re.search(rf"(?<![a-z]){re.escape(word)}(?:v\d|\b(?!-0\b)|(?=\d))", value) is not None
