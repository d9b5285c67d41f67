"""Where values stand in a text: dates, amounts, names, titles, definitions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from core.language.analysis import terms
from core.language.chinese import segment
from core.language.entities import entities
from core.language.scan import HAN
from core.language.stopwords import stopwords
from languages.language import known_languages
from reasoning.rules.decomposition.phrases import words_of
from reasoning.rules.lexicon import Lexicon, lexicon

ValueKind = Literal["name", "date", "number", "phrase"]
MOST_WORDS = 5  # of a phrase before its noun
MOST_RUN = 12
_HAN_RUN = re.compile(f"[{HAN}]+")

_OWN_DATES = "|".join(date for one in known_languages().values() for date in one.dates)
_DIGIT_DATE = r"\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{4}"
_YEAR = r"(?<![\d.,$€£])(?:1\d{3}|20\d{2})(?:s)?(?![\d,]|\.\d)"
_AMOUNT = re.compile(
    r"[$€£¥₽₴]?\s?\d{1,3}(?:[,\u00a0\u202f ]\d{3})+(?:[.,]\d+)?|[$€£¥₽₴]?\d+(?:[.,]\d+)*"
)
_UNIT = re.compile(r"\s?(?:%|°\s?[CF]?|[^\W\d_]{1,14}\.?(?:/[^\W\d_]{1,6})?)")


class ValueSpan(NamedTuple):
    """Hold a value by its span; `form` says more of a name: PERSON, ORG, NAME, TITLE …."""

    start: int
    end: int
    kind: ValueKind
    form: str = ""


@lru_cache(maxsize=512)
def values_in(text: str, language: str, title: str) -> tuple[ValueSpan, ...]:
    """Return the values of a text in its order; names may hold numbers, dates hold no names."""
    lists = lexicon(language)
    dates = [ValueSpan(*match.span(), "date") for match in _dates(lists).finditer(text)]
    found = [*dates, *_names(text, language, title, dates), *_amounts(text, lists, dates)]
    if not lists.known.spaced:
        found += _runs(text, lists, found)
    return tuple(sorted(found))


def has_date(text: str, language: str) -> bool:
    """Tell whether a date that is more than a year stands in a text."""
    return any(not one.group().isdigit() for one in _dates(lexicon(language)).finditer(text))


@lru_cache(maxsize=8)
def _dates(lists: Lexicon) -> re.Pattern[str]:
    months = "|".join(sorted(lists.any_of("month"), key=len, reverse=True)) or "(?!)"
    day = r"\d{1,2}(?:st|nd|rd|th)?"
    named = (
        rf"(?:{day}\s+(?:of\s+)?)?(?<!\w)(?:{months})\.?(?:\s+{day})?,?\s+\d{{4}}"
        rf"|(?<!\w)(?:{months})\s+{day}(?!\d)|{day}\s+(?:{months})(?!\w)"
    )
    return re.compile(rf"{_DIGIT_DATE}|{_OWN_DATES}|{named}|{_YEAR}", re.IGNORECASE)


def _names(text: str, language: str, title: str, dates: list[ValueSpan]) -> Iterator[ValueSpan]:
    taken = [(date.start, date.end) for date in dates]
    for name in entities(text, language):
        inside = any(start <= name.start and name.end <= end for start, end in taken)
        if not inside:
            start, titled = _after_title(name.text, lexicon(language))
            yield ValueSpan(name.start + start, name.end, "name", "PERSON" if titled else name.kind)
    plain = plain_title(title)
    if len(plain) > 1:
        for match in re.finditer(rf"(?<!\w){re.escape(plain)}(?!\w)", text, re.IGNORECASE):
            if match.group()[1:] != match.group()[1:].lower() or plain[1:] == plain[1:].lower():
                yield ValueSpan(*match.span(), "name", "TITLE")  # "the tides" is not "The Tides"


def plain_title(title: str) -> str:
    """Return a title without what stands in brackets at its end."""
    return re.sub(r"\s*[(（].*[)）]\s*$", "", title).strip()


def _runs(text: str, lists: Lexicon, found: list[ValueSpan]) -> Iterator[ValueSpan]:
    """Yield the Chinese words between function words, verbs and nouns of roles: mostly names."""
    taken = {place for value in found for place in range(value.start, value.end)}
    breaks = stopwords(lists.language) | lists.any_of("role", "person_noun", "clause_verb", "break")
    for match in _HAN_RUN.finditer(text):
        start = end = match.start()
        for word_start, word_end in _longest_words(match.group()):
            at, to = match.start() + word_start, match.start() + word_end
            if text[at:to] in breaks or at in taken:
                if 2 <= end - start <= MOST_RUN:
                    yield ValueSpan(start, end, "name", "RUN")
                start = end = to
            else:
                end = to
        if 2 <= end - start <= MOST_RUN:
            yield ValueSpan(start, end, "name", "RUN")


def _longest_words(run: str) -> list[tuple[int, int]]:
    """Return the spans of the words of a run, those inside longer ones left out."""
    longest: list[tuple[int, int]] = []
    for start, end in sorted({(a, b) for _, a, b in segment(run)}, key=lambda s: (s[0], -s[1])):
        if not longest or end > longest[-1][1]:
            longest.append((start, end))
    return longest


def _after_title(name: str, lists: Lexicon) -> tuple[int, bool]:
    """Return where the person begins in "Senator Barnaby Joyce", and whether one does."""
    words = list(re.finditer(r"\S+", name))
    for place in range(len(words) - 2, -1, -1):
        if words[place].group().casefold() in lists.any_of("person_noun"):
            following = words[place + 1]
            if following.group()[0].isupper():
                return following.start(), True
            return 0, False
    return 0, False


def _amounts(text: str, lists: Lexicon, dates: list[ValueSpan]) -> Iterator[ValueSpan]:
    taken = {place for date in dates for place in range(date.start, date.end)}
    for match in _AMOUNT.finditer(text):
        start, end = match.span()
        start += len(match.group()) - len(match.group().lstrip())
        before = text[start - 1 : start]
        glued = (before.isascii() and before.isalnum()) or before in ("-", "/")
        if taken & set(range(start, end)) or (start and glued):
            continue
        yield ValueSpan(start, _with_unit(text, end, lists), "number")
    if lists.known.spaced:
        pattern = lists.alternatives("numeral")
        for match in re.finditer(rf"{pattern}(?:[\s-]{pattern})*", text, re.IGNORECASE):
            yield ValueSpan(match.start(), _with_unit(text, match.end(), lists), "number", "WORD")


def _with_unit(text: str, end: int, lists: Lexicon) -> int:
    """Return where an amount ends with what it counts: "20 mg", "3.5 million people"."""
    if not lists.known.spaced:
        units = "|".join(sorted(lists.any_of("scale"), key=len, reverse=True))
        match = re.compile(rf"(?:\s?(?:{units})){{1,3}}").match(text, end)
        return match.end() if match else end
    for _ in range(2):
        match = _UNIT.match(text, end)
        word = match.group().strip() if match else ""
        if match is None or not word or word.casefold() in _not_units(lists):
            break
        end = match.end() - (len(word) - len(word.rstrip(".")))
        if word.casefold() not in lists.any_of("numeral", "scale"):
            break
    return end


@lru_cache(maxsize=8)
def _not_units(lists: Lexicon) -> frozenset[str]:
    return stopwords(lists.language) | lists.any_of("relative_preposition", "conjoined")


def led_phrases(
    text: str, start: int, end: int, nouns: frozenset[str], lists: Lexicon
) -> Iterator[ValueSpan]:
    """Yield the phrases that a determiner leads in and one of the nouns ends: "the lookup API"."""
    words = words_of(text[start:end])
    led = lists.any_of("determiner", "indefinite", "theirs")
    for place, word in enumerate(words):
        first = place
        while first and place - first < MOST_WORDS and words[first - 1].low not in led:
            first -= 1
        within = words[first:place]
        common = any(one.kind != "word" or one.low in _not_units(lists) for one in within)
        if within and first and not common and nouns & set(terms(word.text, lists.language)):
            yield ValueSpan(start + words[first].start, start + word.end, "name", "COMMON")
