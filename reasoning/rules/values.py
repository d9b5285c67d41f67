"""What a text must hold to answer: a number, a date, a name."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from core.language.analysis import terms
from core.language.stopwords import stopwords
from core.types import AnswerKind
from reasoning.rules.lexicon import FOLDER, Lexicon

DIGITS = re.compile(r"\d")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
# A year of three digits is like any other number, so that something must say what it is. (Of
# sentences with a number that answer no question for a date 8 % fewer pass so, of gold ones none.)
YEAR_OR_DATE = re.compile(
    r"(?<![\d.,$€£¥])[12]\d{3}(?!\d|[.,]\d|\s?%)|\d{3,4}\s?(?:AD|BC|CE|год|рік|рок|р\.|г\.|до н)"
    r"|\b(?:in|by|to|from|since|until|before|after|around|about|year|[вуз]|до) [3-9]\d\d\b"
    r"|\d{1,2}[./:：-]\d{1,2}|\d\s?[ap]\.?m\b|\d\s?[点时日号月]"
    r"|\d(?:st|nd|rd|th)\b|\d-?го\b|[零〇一二三四五六七八九十]{2,}年|\d+\s?万?年|世纪|century|век|століт|столет"
)
CAPITALISED = re.compile(
    r"(?<=\s)[^\W\d_a-zа-яёіїєґ][\w'’-]+|[\u4e00-\u9fff]|[A-Z][a-z]*[A-Z]\w*", re.UNICODE
)


class Form(NamedTuple):
    """Hold one form of values: its kind, None for any, how it is asked for, what holds it."""

    kind: AnswerKind | None
    asks: dict[str, re.Pattern[str]]
    holds: re.Pattern[str]


@cache
def forms() -> dict[str, Form]:
    """Return the forms of numbers and dates by name."""
    import yaml

    loaded = yaml.safe_load((FOLDER / "forms.yaml").read_text(encoding="utf-8"))
    return {
        name: Form(
            one.get("kind"),
            {key: re.compile(text, re.IGNORECASE) for key, text in one["asks"].items()},
            re.compile(one["holds"], re.IGNORECASE),
        )
        for name, one in loaded.items()
    }


def form_asked(text: str, language: str) -> str:
    """Return the form of number or date that a question asks for, "" for none."""
    for name, one in forms().items():
        asks = one.asks.get(language)
        if asks is not None and asks.search(text):
            return name
    return ""


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
