"""English words by their form: past tenses, verbs, plurals, and the kind of thing a noun names."""

from __future__ import annotations

import re

from core.types import AnswerKind
from reasoning.rules.lexicon import Lexicon
from reasoning.rules.phrases import Word

_PAST = re.compile(r"[a-z]{3,}ed$")


def is_past(word: str, lists: Lexicon) -> bool:
    """Tell whether a word reads as a past tense or a participle."""
    if word in lists.any_of("not_participle"):
        return False
    return _PAST.match(word) is not None or word in lists.any_of("participle", "past_verb")


def is_verb(word: Word, lists: Lexicon) -> bool:
    """Tell whether a word reads as a verb."""
    return word.plain and (
        word.low in lists.any_of("base_verb", "auxiliary_verb") or is_past(word.low, lists)
    )


def kind_of(noun: str, lists: Lexicon) -> AnswerKind | None:
    """Return the kind of answer that a noun in small letters stands for, None when unknown."""
    last = singular(noun.split()[-1], lists) if noun.split() else ""
    kinds: tuple[tuple[str, AnswerKind], ...] = (
        ("person_noun", "person"),
        ("place_noun", "place"),
        ("date_noun", "date"),
    )
    for name, kind in kinds:
        if last in lists.any_of(name) or noun in lists.any_of(name):
            return kind
    return None


def is_plural(noun: str, lists: Lexicon) -> bool:
    """Tell whether a noun in small letters reads as a plural."""
    return singular(noun, lists) != noun


def singular(noun: str, lists: Lexicon) -> str:
    """Return the singular of an English noun in small letters."""
    noun = noun.rstrip("'’")
    if lists.language != "en":
        return noun
    irregular = lists.table("plural").get(noun)
    if irregular or len(noun) < 4:
        return irregular or noun
    if noun.endswith("ies") and len(noun) > 4:
        return f"{noun[:-3]}y"
    if noun.endswith(("sses", "shes", "ches", "xes")):
        return noun[:-2]
    return noun[:-1] if noun.endswith("s") and not noun.endswith(("ss", "us", "is")) else noun
