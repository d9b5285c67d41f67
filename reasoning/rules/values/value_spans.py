"""Values in a text by their spans, and how well each fits what is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from core.language.analysis import terms
from core.language.chinese import segment
from core.language.cues import stopwords
from core.language.entities import entities
from core.language.scan import HAN
from core.language.words import readings
from core.types import AnswerKind, SubQuestion
from languages.language import find_language, known_languages
from reasoning.rules.decomposition.phrases import is_past, kind_of, singular, words_of
from reasoning.rules.lexicon import Lexicon, lexicon

ValueKind = Literal["name", "date", "number", "phrase"]
MOST_WORDS = 5  # of a phrase before its noun; chosen, not measured
MOST_RUN = 12  # chosen, not measured
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


AROUND, BESIDE = 40, 0.7  # characters; what a noun beside a value is worth; chosen, not measured
_NEXT_WORD = re.compile(r"\s[^\W\d_]+")
_BORN = "|".join(re.escape(word) for one in known_languages().values() for word in one.born)
_AFTER_NAME = re.compile(rf"\s*(?:\((?:[^()]{{0,40}}\b)?(?:{_BORN}|\d{{4}}))|[（(]\d{{4}}")


def wanted_noun(question: SubQuestion, lists: Lexicon) -> tuple[str, AnswerKind]:
    """Return the noun a question asks with ("" for none) and the kind of value it wants."""
    slot = (question.slot or "").rstrip("0123456789").replace("_", " ")
    noun = slot or asked_noun(question.text, lists)
    kind = question.wants
    if kind in ("text", "list"):
        quantity = singular(noun, lists) in lists.any_of("number_noun")
        kind = "number" if quantity else kind_of(noun, lists) or kind
    return noun, kind


def asked_noun(text: str, lists: Lexicon) -> str:
    """Return the noun after "which" or "what", or after "what is the", in small letters."""
    match = lists.search("noun_asker", text) if lists.any_of("noun_asker") else None
    if match is None:
        return ""
    words: list[str] = []
    for word in text[match.end() :].split():
        bare = word.strip(",.?!'\"()«»").casefold()
        if dictionary := lists.known.dictionary:
            found = [one.pos for one in readings(bare, dictionary)[:2]]
            if "NOUN" in found:
                return bare
            continue
        stops = lists.any_of("auxiliary_verb", "relative_preposition", "relative", "joint")
        if not bare or bare in stops or bare.startswith("{") or len(words) > 4:
            break
        if words and (bare in lists.any_of("base_verb") or is_past(bare, lists)):
            break
        if words and (kind_of(words[-1], lists) or word[:1].isupper()):
            break
        words.append(bare)
    words = [word for word in words if word not in lists.any_of("determiner", "indefinite")]
    if words:
        return words[-1]
    measured = (bare.strip(",.?!'\"()").casefold() for bare in text.split())
    return next((one for one in measured if one in lists.any_of("number_noun")), "")


def kind_fit(kind: AnswerKind, noun: str, value: ValueSpan, text: str, lists: Lexicon) -> float:
    """Return -1..1: how well a value is of the wanted kind."""
    if kind == "date":
        return 1.0 if value.kind == "date" else -1.0
    if kind == "number":
        weak = value.form == "WORD"
        return (0.7 if weak else 1.0) if value.kind == "number" else -0.6
    if kind in ("person", "place"):
        if value.kind != "name":
            return -1.0
        return _person(value, text, lists) if kind == "person" else _place(value, text, noun, lists)
    if value.kind == "name" or value.form == "FIELD":
        return 0.5
    return 0.0 if value.kind == "phrase" else -0.4


def _person(value: ValueSpan, text: str, lists: Lexicon) -> float:
    name = text[value.start : value.end]
    if value.form == "PERSON" or _AFTER_NAME.match(text, value.end):
        return 1.0
    if value.form in ("ORG", "ABBREVIATION", "CODE", "WORK_OF_ART"):
        return -0.5
    count = len(name) if value.form == "RUN" else len(name.split())
    fit = 0.5 if 2 <= count <= 4 else 0.0
    if value.form == "TITLE":
        fit += 0.2
    before = text[max(0, value.start - AROUND) : value.start]
    if _led(before, "by", lists):
        fit += 0.4
    last = before.split()[-1].casefold() if before.split() else ""
    if last in lists.any_of("person_noun") or _led(before, "person_noun", lists):
        fit += 0.4
    if _led(before, "place_preposition", lists):
        fit -= 0.5
    return min(1.0, fit)


def _place(value: ValueSpan, text: str, noun: str, lists: Lexicon) -> float:
    if text[value.start : value.end].split()[-1].casefold() in lists.any_of("place_noun"):
        return 1.0
    if value.form in ("PERSON", "ABBREVIATION", "CODE", "WORK_OF_ART"):
        return -0.5
    before = text[max(0, value.start - AROUND) : value.start]
    if noun in lists.any_of("wide_place") and before.rstrip().endswith(","):
        return 1.0  # the last of "Vienna, Austria"
    if _led(before, "place_preposition", lists):
        return 0.8
    return 0.0 if value.form == "ORG" else 0.3


def _led(before: str, name: str, lists: Lexicon) -> bool:
    """Tell whether a word of a list, and perhaps an article, stands right before a value."""
    if not lists.known.spaced:
        return before.endswith(tuple(lists.any_of(name)))
    words = before.casefold().split()
    while words and words[-1] in lists.any_of("determiner", "indefinite"):
        words.pop()
    return bool(words) and words[-1] in lists.any_of(name)


def noun_fit(wanted: frozenset[str], value: ValueSpan, text: str, language: str) -> float:
    """Return 0..1: whether the noun, given by its terms and its synonyms', is in a value or by it.

    What cues tell a birthplace or an author changed none of 130 answers of HotpotQA and MuSiQue.
    """
    if wanted & set(terms(text[value.start : value.end], language)):
        return 1.0
    around = text[max(0, value.start - AROUND) : value.end + AROUND]
    return BESIDE if wanted & set(terms(around, language)) else 0.0


def completed(value: ValueSpan, noun: str, text: str, language: str) -> ValueSpan:
    """Return a Cyrillic name with the noun asked for, and whose it is: "Русское общество врачей".

    Only the first word of such a name has a capital.
    """
    dictionary = find_language(language).dictionary
    if value.kind != "name" or not noun or not dictionary:
        return value
    wanted = set(terms(noun, language))
    end = value.end
    for number, match in enumerate(_NEXT_WORD.finditer(text, value.end)):
        if match.start() != end or number > 2:
            break
        word = match.group().strip()
        named = bool(wanted & set(terms(word, language)))
        owner = any(one.case == "gent" for one in readings(word.casefold(), dictionary)[:1])
        if not (named if number == 0 else owner):
            break
        end = match.end()
    return value._replace(end=end)
