"""Numbers of chapters, as a question and as a heading write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from languages.language import known_languages

ROMAN = re.compile(r"(?=[ivxl])(xl|l?x{0,3})(ix|iv|v?i{0,3})")
_WORTH = {"i": 1, "v": 5, "x": 10, "l": 50}
_CHINESE = re.compile(r"第?\s*([\d一二三四五六七八九十]{1,3})\s*[章节回部讲篇课]")
_LEVELS = re.compile(r"\s*[\dIVXL]{1,4}(?:\.\d+)*[.):]?\s+")
_NUMERALS = re.compile(r"\d+|[一二三四五六七八九十]+|[^\W\d\u3400-\u9fff]+")
_MARKS = " .:：—–-"
_ALONE = re.compile(r"(\d{1,3}|[IVXL]{1,6}(?=[.):]))(?![.\d]*\d)[.):]?(?:\s|$)")


def number_of(word: str) -> int:
    """Return the number that a word says: "3", "iii", "three", "third"; 0 for none."""
    word = word.casefold().strip(".")
    if word.isdecimal():
        return int(word)
    for number, pattern in enumerate(_numbers(), start=1):
        if pattern.fullmatch(word):
            return number
    return _roman(word) if ROMAN.fullmatch(word) else 0


def renumbered(text: str, number: int, to: int) -> str:
    """Return a text in which the last word that says one number says another, "" for none."""
    places = [one for one in _NUMERALS.finditer(text) if number_of(one[0]) == number]
    return f"{text[: places[-1].start()]}{to}{text[places[-1].end() :]}" if places else ""


def plural_form(count: int, forms: Sequence[str]) -> str:
    """Return the form of a noun for a count: of one for any, of two, or of three as in Slavic."""
    last = 0 if count % 10 == 1 and count % 100 != 11 else 2
    last = 1 if 2 <= count % 10 <= 4 and not 12 <= count % 100 <= 14 else last
    return forms[(0, int(count != 1), last)[len(forms) - 1]]


def _roman(word: str) -> int:
    values = [_WORTH[letter] for letter in word]
    return sum(
        -one if one < following else one
        for one, following in zip(values, [*values[1:], 0], strict=True)
    )


@cache
def _numbers() -> list[re.Pattern[str]]:
    """Return what is said for one, two, three … in any of the languages."""
    lists = [known.read("summaries").get("numbers", []) for known in known_languages().values()]
    most = max(map(len, lists))
    return [re.compile("|".join(one[n] for one in lists if n < len(one))) for n in range(most)]


@cache
def _chapter() -> re.Pattern[str]:
    lists = [known.read("summaries").get("chapters", "") for known in known_languages().values()]
    return re.compile(rf"(?:{'|'.join(filter(None, lists))})\s+(\w+)", re.IGNORECASE)


def heading_number(heading: str) -> int:
    """Return the number of a chapter by its heading, "3. Setup" or "Chapter III"; 0 for none."""
    match = _numbered(heading)
    return number_of(match[1]) if match is not None else 0


def chapter_title(line: str) -> str | None:
    """Return what a line says that is the heading of a numbered chapter, None for any other line.

    That is "" for "Chapter III" alone. A sentence that begins so is none: "Chapter 3 explains …".
    """
    shown = line.strip()
    match = _CHINESE.match(shown) or _chapter().match(shown)
    if match is None or not number_of(match[1]):
        return None
    rest = shown[match.end() :]
    marked = rest.lstrip()[:1] in (*_MARKS, "")
    title = rest.strip(_MARKS)
    return None if title[:1].islower() and not marked else title


def heading_title(heading: str) -> str:
    """Return what a heading says beside its number."""
    match = _numbered(heading) if heading_number(heading) else _LEVELS.match(heading)
    return heading if match is None else match.string[match.end() :].strip(_MARKS)


def _numbered(heading: str) -> re.Match[str] | None:
    shown = heading.strip().lstrip("#*_ ")
    return _ALONE.match(shown) or _CHINESE.match(shown) or _chapter().match(shown)
