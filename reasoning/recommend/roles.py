"""Which fields of a collection say what of a thing that is recommended."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from core.metadata import humanise
from core.types import FieldInfo
from languages.language import known_languages, read_yaml

_HERE = Path(__file__).parent
LicenceClass = Literal["closed", "copyleft", "weak", "permissive"]
CLASSES: tuple[LicenceClass, ...] = get_args(LicenceClass)
FREE: frozenset[LicenceClass] = frozenset({"permissive", "weak", "copyleft"})
_PARTS = re.compile(r"\s+/\s+|\s+and\s+|;\s*", re.IGNORECASE)
_MARKS = ":：,;，；、()（）"
_CHOICE = re.compile(r"\s+or\s+|\|", re.IGNORECASE)


@cache
def tables() -> dict[str, Any]:
    """Return the fields and words of things that are recommended, whatever the language."""
    found: dict[str, Any] = read_yaml(_HERE / "roles.yaml")
    return found


@cache
def licences() -> dict[str, Any]:
    """Return what licences are called, by how they bind."""
    found: dict[str, Any] = read_yaml(_HERE / "licences.yaml")
    return found


@cache
def cue(name: str) -> re.Pattern[str]:
    """Return the words of a name in all languages as one pattern; it matches nothing if none."""
    listed = [one.read("recommend").get(name, "") for one in known_languages().values()]
    return re.compile("|".join(filter(None, listed)) or "(?!)", re.IGNORECASE)


def is_denied(text: str, start: int) -> bool:
    """Tell whether what stands at a place of a need is denied: "not GPL"."""
    return cue("negation").search(text[:start]) is not None


def denied_of(text: str, spans: Sequence[tuple[int, int]]) -> list[bool]:
    """Tell which of the spans are denied; who wants "not GPL or MPL" wants none of the two."""
    denied: list[bool] = []
    for place, (start, _) in enumerate(spans):
        between = text[spans[place - 1][1] : start] if place else ""
        listed = cue("joins").fullmatch(between) and cue("one_of").search(between)
        denied.append(is_denied(text, start) or bool(listed and denied[-1]))
    return denied


def is_apart(text: str, start: int, end: int) -> bool:
    """Tell whether a stretch stands alone between marks: "Go" in "backup, Go, MIT"."""
    before, after = text[:start].rstrip(), text[end:].lstrip()
    begins = not before or before[-1] in _MARKS
    return begins and (not after or after[0] in (_MARKS if before else _MARKS.strip(":：")))


def with_marks(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span with the words beside it that only mark it: "written in Python"."""
    for name in ("written_in", "runs_on", "before_language", "before_system", "before_platform",
                 "before_licence", "negation"):  # fmt: skip
        match = cue(name).search(text[:start])
        start = match.start() if match else start
    match = cue("after_language").search(text[end:])
    return start, end + match.end() if match else end


def find_roles(fields: Sequence[FieldInfo]) -> dict[str, FieldInfo]:
    """Return the field of each role that a collection has, by the name of the role."""
    found: dict[str, FieldInfo] = {}
    for role, names in tables()["roles"].items():
        for name in names:
            fitting = [one for one in fields if _is_called(one.name, name) and _fits(role, one)]
            if fitting:
                found[role] = fitting[0]
                break
    return found


def value_of(role: str, metadata: Mapping[str, Any]) -> Any:  # noqa: ANN401 - whatever a file says
    """Return what a document says in the field of a role, None where it says nothing."""
    for name in tables()["roles"][role]:
        for key, value in metadata.items():
            if value not in (None, "", []) and _is_called(key, name):
                return value
    return None


def values_of(field: str, metadata: Mapping[str, Any]) -> list[str]:
    """Return the values that a document has in a field, none where it has no such field."""
    name = field.rsplit(".", 1)[-1]
    value = next((value for key, value in metadata.items() if _is_called(key, humanise(name))), "")
    return [str(one) for one in (value if isinstance(value, list) else [value]) if one != ""]


def _is_called(field: str, name: str) -> bool:
    label = humanise(field.rsplit(".", 1)[-1]).casefold()
    return label == name.casefold()


def _fits(role: str, info: FieldInfo) -> bool:
    """Tell whether values are of the kind of a role: a ticket's status is no maturity."""
    if role == "size" and info.type == "text":
        return any(cue("small").search(one) for one in info.examples)
    if role == "maturity":
        known = [one for one in info.examples if maturity_of(one) is not None]
        return 2 * len(known) > len(info.examples)
    numeric = role in tables()["scales"] or role in ("rating", "pages")
    return info.type == "number" if numeric else True


def maturity_of(value: str) -> float | None:
    """Return how far along a word says that a thing is, 0..1, None for other words."""
    word = value.casefold().rsplit("::", 1)[-1].strip(" 0123456789-")
    for degree, words in tables()["maturity"].items():
        if word in words:
            return float(degree)
    return None


def class_of_licence(name: str) -> LicenceClass | None:
    """Return how a licence binds, the strictest of several, None where that is not known.

    Of alternatives ("MIT OR GPL-2.0") it is the freest.
    """
    choices = [_strictest(one) for one in _CHOICE.split(name)]
    known = [one for one in choices if one is not None]
    return max(known, key=CLASSES.index) if known else None


def _strictest(name: str) -> LicenceClass | None:
    found = [_class_of_one(part) for part in _PARTS.split(name)]
    if not all(found):
        return None
    return min((one for one in found if one is not None), key=CLASSES.index)


def _class_of_one(name: str) -> LicenceClass | None:
    low = name.casefold()
    return next((one for one in CLASSES if re.search(licences()[one], low)), None)
