"""Dates and months in words, written as ISO 8601 does."""

from __future__ import annotations

import re
from functools import cache

from reasoning.rules.record_phrases import tables


def with_iso_dates(text: str) -> str:
    """Write dates and months of a year as ISO 8601 does: "15 марта 2024", "2024年3月"."""

    def written(match: re.Match[str]) -> str:
        if match["name"]:
            month = next(n for n, names in _months().items() if match["name"].casefold() in names)
        else:
            month = int(match["han"])
        day = match["before"] or match["after"] or match["handay"]
        return f"{match['year'] or match['hanyear']}-{month:02d}" + (
            f"-{int(day):02d}" if day else ""
        )

    return _dates().sub(written, text)


@cache
def _months() -> dict[int, frozenset[str]]:
    return {n: frozenset(names) for n, names in enumerate(tables()["months"], start=1)}


@cache
def _dates() -> re.Pattern[str]:
    names = "|".join(sorted((n for one in _months().values() for n in one), key=len, reverse=True))
    return re.compile(
        rf"(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? )?\b(?P<name>{names})\.?"
        r"(?: (?P<after>\d{1,2})(?:st|nd|rd|th)?\b)?,? (?:of )?(?P<year>\d{4})\b"
        r"|(?P<hanyear>\d{4})年(?P<han>\d{1,2})月(?:份|(?P<handay>\d{1,2})[日号])?",
        re.IGNORECASE,
    )
