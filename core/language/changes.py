"""Tell whether a statement says that something changed, and whether it joins several things."""

from __future__ import annotations

import re
from functools import cache

from languages.language import find_language


def marks_change(text: str, language: str, *, surely: bool = False) -> bool:
    """Tell whether a text says that what it states was otherwise before.

    Not `surely` does one that only says when it holds, as "now", which may be of another thing.
    """
    plain = text.replace("’", "'")
    plain = _pattern(language, "holds_now").sub(" ", plain) if surely else plain
    return _pattern(language, "changed").search(plain) is not None


def begins_correction(text: str, language: str) -> bool:
    """Tell whether a text begins as one that corrects what was stated before it: "No, …"."""
    return _pattern(language, "corrects").search(text.replace("’", "'")) is not None


def points_back(text: str, language: str) -> bool:
    """Tell whether a statement is of what the one before it names: "She lives in …"."""
    return _pattern(language, "points").search(text) is not None


def without_correction(text: str, language: str) -> str:
    """Return a text without the words that begin a correction."""
    return _pattern(language, "corrects").sub("", text.replace("’", "'"), count=1)


def adds_another(text: str, language: str) -> bool:
    """Tell whether a text states something beside what was stated before: "also"."""
    return _pattern(language, "adds").search(text) is not None


def without_changes(text: str, language: str) -> str:
    """Return a text without the words that say that something changed: "now"."""
    return _pattern(language, "changed").sub(" ", text.replace("’", "'"))


def names_several(text: str, language: str) -> bool:
    """Tell whether a text joins several things: "German and French"."""
    return _pattern(language, "joined").search(text) is not None


@cache
def _pattern(language: str, name: str) -> re.Pattern[str]:
    known = find_language(language).read("recall") or find_language(None).read("recall")
    return re.compile(known[name], re.IGNORECASE)
