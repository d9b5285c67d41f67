"""What a text must hold to answer: a number, a date, a name."""

from __future__ import annotations

import re

from core.language.analysis import terms
from core.types import AnswerKind
from reasoning.rules.lexicon import Lexicon

DIGITS = re.compile(r"\d")
YEAR_OR_DATE = re.compile(
    r"\d{3,4}|\d{1,2}[./:：-]\d{1,2}|\d\s?[ap]\.?m\b|\d\s?[点时日号月]"
    r"|[零〇一二三四五六七八九十]{2,}年|\d+年|世纪|century|век|століт|столет"
)
CAPITALISED = re.compile(
    r"(?<=\s)[^\W\d_a-zа-яёіїєґ][\w'’-]+|[\u4e00-\u9fff]|[A-Z][a-z]*[A-Z]\w*", re.UNICODE
)


def has_kind(
    kind: AnswerKind, text: str, words: Lexicon, asked: frozenset[str] = frozenset()
) -> bool:
    """Tell whether a text contains a value of the wanted kind; text and yes/no always do.

    A person or place needs a name that is not among the terms `asked`.
    """
    if kind == "number":
        return DIGITS.search(text) is not None or words.search("numeral", text) is not None
    if kind == "date":
        return YEAR_OR_DATE.search(text) is not None or words.found("day_name", text)
    if kind in ("person", "place"):
        names = CAPITALISED.findall(f" {text}")
        return any(not asked.issuperset(terms(name, words.language)) for name in names)
    return True
