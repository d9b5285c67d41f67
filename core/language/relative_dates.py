"""Resolve days that a text names by the day it was written on: "yesterday", "last week"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from typing import Any

from languages.language import find_language

DAYS, MONTHS = 7, 12
SPRING = 3  # the month in which spring begins, and every third one another season


def with_dates(text: str, language: str, written: date) -> str:
    """Return a text with the date behind each day that it names by the day it was written on."""
    patterns = _patterns(language)
    found: list[tuple[int, int, str]] = []
    for pattern, unit, amount in patterns:
        for match in pattern.finditer(text):
            if all(match.end() <= start or end <= match.start() for start, end, _ in found):
                found.append((*match.span(), _resolved(match, unit, amount, language, written)))
    for _, end, named in sorted(found, reverse=True):
        if named:
            text = f"{text[:end]} ({named}){text[end:]}"
    return text


def format_day(day: date, language: str) -> str:
    """Return a day as the language writes it: "24 November 2026"."""
    return _formatted(
        "day", day, find_language(language).read("recall") or find_language(None).read("recall")
    )


@cache
def _patterns(language: str) -> Sequence[tuple[re.Pattern[str], str, str]]:
    """Return the patterns of a language in their order, each with its unit and its amount."""
    known = find_language(language).read("recall")
    if not known:
        return ()
    spaced = find_language(language).spaced
    gaps = {
        "number": "|".join(sorted(map(re.escape, known["numbers"]), key=len, reverse=True)),
        "season": "|".join(known["seasons"]),
        "weekday": "|".join(known["weekdays"]),
    }
    gaps["number"] += r"|\d{1,2}" if spaced else r"|\d{1,3}"
    return tuple(
        (re.compile(_filled(pattern, gaps), re.IGNORECASE), unit, str(amount))
        for pattern, unit, amount in known["relative"]
    )


def _filled(pattern: str, gaps: Mapping[str, str]) -> str:
    for name, body in gaps.items():
        pattern = pattern.replace(f"{{{name}}}", body)
    return pattern


def _resolved(match: re.Match[str], unit: str, amount: str, language: str, written: date) -> str:
    """Return what a match names as a date, "" where no calendar has it."""
    known = find_language(language).read("recall")
    count = _count(match, amount, known["numbers"])
    try:
        match unit:
            case "day":
                return _formatted("day", written + timedelta(days=count), known)
            case "month":
                months = written.year * MONTHS + written.month - 1 + count
                return _formatted("month", date(months // MONTHS, months % MONTHS + 1, 1), known)
            case "year":
                return _formatted("year", date(written.year + count, 1, 1), known)
            case "season":
                return _season(match["season"], count, written, known)
            case "weekday":
                return _weekday(match["weekday"], count, written, known)
            case _:
                shifted = written + timedelta(days=DAYS * (abs(count) - 1) * (1, -1)[count < 0])
                side = "before" if count < 0 else "after"
                return _formatted(f"{unit}_{side}", shifted, known)
    except (OverflowError, ValueError):
        return ""


def _count(match: re.Match[str], amount: str, numbers: Mapping[str, int]) -> int:
    if not amount.endswith("n"):
        return int(amount)
    named = " ".join(match["n"].casefold().split())
    count = int(named) if named.isdigit() else numbers[named]
    return -count if amount.startswith("-") else count


def _season(named: str, count: int, written: date, known: Mapping[str, Any]) -> str:
    """Return the nearest season of that name on one side of the day."""
    place = _place(named, known["seasons"])
    begins = SPRING + 3 * place
    year = written.year + (0, 1)[count > 0]
    if count < 0 and begins + 3 > written.month:  # it is not over yet
        year -= 1
    elif count > 0 and written.month < begins:
        year -= 1
    names = known.get("season_names") or [one.split("|")[0] for one in known["seasons"]]
    return _formatted("season", date(year, 1, 1), known, season=names[place])


def _weekday(named: str, count: int, written: date, known: Mapping[str, Any]) -> str:
    """Return the nearest day of that name on one side of the day, never the day itself."""
    ahead = (_place(named, known["weekdays"]) - written.weekday()) % DAYS or DAYS
    shift = ahead if count > 0 else ahead - DAYS or -DAYS
    return _formatted("day", written + timedelta(days=shift), known)


def _place(named: str, listed: Sequence[str]) -> int:
    low = named.casefold()
    return next(place for place, one in enumerate(listed) if low in one.casefold().split("|"))


def _formatted(name: str, day: date, known: Mapping[str, Any], season: str = "") -> str:
    months = known.get("month_names", known["months"]) if name == "month" else known["months"]
    return str(known["formats"][name]).format(
        day=day.day, month=months[day.month - 1], year=day.year, season=season
    )
