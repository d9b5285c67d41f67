"""What a text must hold to answer: a number, a date, a name."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from core.language.analysis import terms
from core.language.stopwords import stopwords
from core.types import AnswerKind
from languages.language import known_languages, read_yaml
from reasoning.rules.lexicon import Lexicon

FORMS = Path(__file__).with_name("forms.yaml")
DIGITS = re.compile(r"\d")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
# A year of three digits is like any other number, so that something must say what it is. (Of
# sentences with a number that answer no question for a date 8 % fewer pass so, of gold ones none.)
YEAR_OR_DATE = re.compile(
    "|".join(
        [
            r"(?<![\d.,$€£¥])[12]\d{3}(?!\d|[.,]\d|\s?%)|\d{1,2}[./:：-]\d{1,2}",
            *(dated for one in known_languages().values() for dated in one.dated),
        ]
    )
)
CAPITALISED = re.compile(
    r"(?<=\s)[^\W\d_a-zа-яёіїєґ][\w'’-]+|[\u4e00-\u9fff]|[A-Z][a-z]*[A-Z]\w*", re.UNICODE
)


class Form(NamedTuple):
    """Hold one form of values: its kind, None for any, and what holds it."""

    kind: AnswerKind | None
    holds: re.Pattern[str]


@cache
def forms() -> dict[str, Form]:
    """Return the forms of numbers and dates by name; a text may say them in any language."""
    spoken = [one.read("forms") for one in known_languages().values()]
    found = {}
    for name, one in read_yaml(FORMS).items():
        held = [own["holds"] for own in (one, *(s.get(name, {}) for s in spoken)) if "holds" in own]
        found[name] = Form(one.get("kind"), re.compile("|".join(held), re.IGNORECASE))
    return found


@cache
def _asks(language: str) -> dict[str, re.Pattern[str]]:
    known = known_languages().get(language)
    told = known.read("forms") if known is not None else {}
    return {name: re.compile(one["asks"], re.IGNORECASE) for name, one in told.items()}


def form_asked(text: str, language: str) -> str:
    """Return the form of number or date that a question asks for, "" for none."""
    return next((name for name, asks in _asks(language).items() if asks.search(text)), "")


def has_kind(
    kind: AnswerKind,
    text: str,
    words: Lexicon,
    asked: frozenset[str] = frozenset(),
    form: str = "",
) -> bool:
    """Tell whether a text contains a value of the wanted kind; text and yes/no always do.

    A person or place needs a name that is not among the terms `asked`, a number or a date the
    `form` that is asked for: a version, an amount of money.
    """
    if form and not forms()[form].holds.search(text):
        return False
    if kind == "number":
        if (form and forms()[form].kind) or DIGITS.search(text) is not None:
            return True
        # "One" is an article or a pronoun more often than a number.
        written = re.finditer(words.alternatives("numeral"), text, re.IGNORECASE)
        return any(one.group().casefold() not in words.any_of("ones") for one in written)
    if kind == "date":
        return YEAR_OR_DATE.search(text) is not None or words.found("day_name", text)
    if kind in ("person", "place"):
        # The first word of a sentence has a capital anyway: no function word is a name.
        first = text.split(maxsplit=1)[:1]
        common = stopwords(words.language)
        lead = "" if first and first[0].casefold().strip(",") in common else " "
        names = CAPITALISED.findall(f"{lead}{text}")
        return any(not asked.issuperset(terms(name, words.language)) for name in names)
    return True


def without_numbers(text: str, numbers: frozenset[str]) -> str:
    """Return a text without the numbers that the question says itself: they are no answer."""
    return NUMBER.sub(lambda match: "" if match.group() in numbers else match.group(), text)
