"""English noun phrases: where a description begins, and what kind of thing its noun is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from core.language.stopwords import stopwords
from core.types import AnswerKind
from reasoning.rules.lexicon import Lexicon
from reasoning.rules.phrases import POSSESSIVE, Word, span

MOST_WORDS = 5
_PAST = re.compile(r"[a-z]{3,}ed$")


class Phrase(NamedTuple):
    """Hold a phrase "the older brother": words[start:end], its noun the last of them."""

    start: int
    end: int
    body: str
    noun: str
    definite: bool


def phrase_before(text: str, words: Sequence[Word], end: int, lists: Lexicon) -> Phrase | None:
    """Return the phrase "the … noun" that ends before words[end], or None."""
    noun = words[end - 1] if end else None
    if noun is None or not (noun.plain or noun.low in lists.any_of("abbreviation_noun")):
        return None
    if noun.low in _small(lists) | stopwords("en"):
        return None
    if is_past(noun.low, lists) or _is_ing(noun.low, lists):
        return None
    if noun.low in lists.any_of("reporting") and kind_of(noun.low, lists) is None:
        return None
    for start in range(end - 2, max(-1, end - 2 - MOST_WORDS), -1):
        word = words[start]
        definite = word.low in lists.any_of("determiner")
        if definite or word.low in lists.any_of("indefinite"):
            body = span(text, words[start + 1 : end])
            return Phrase(start, end, body, noun.low, definite)
        if word.kind not in ("word", "quoted") or word.low in _small(lists):
            return None
        if POSSESSIVE.search(word.text):
            return None
    return None


def _is_ing(word: str, lists: Lexicon) -> bool:
    return word.endswith("ing") and word not in lists.any_of("noun_ing")


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


def is_third_person(words: Sequence[Word], place: int, lists: Lexicon) -> bool:
    """Tell whether a word right after "that" reads as its verb: "that signs events"."""
    word = words[place]
    if not word.plain or singular(word.low, lists) == word.low:
        return False
    following = words[place + 1] if place + 1 < len(words) else None
    return following is None or not is_verb(following, lists)


def _small(lists: Lexicon) -> frozenset[str]:
    return lists.any_of(
        *("relative", "relative_preposition", "auxiliary_verb", "conjoined", "either", "joint")
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


def asker(noun: str, lists: Lexicon) -> str:
    """Return the words that ask for a person, or for a thing, or for several."""
    verb = "are" if is_plural(noun, lists) else "is"
    return f"Who {verb}" if kind_of(noun, lists) == "person" else f"What {verb}"


def is_plural(noun: str, lists: Lexicon) -> bool:
    """Tell whether a noun in small letters reads as a plural."""
    return singular(noun, lists) != noun


def singular(noun: str, lists: Lexicon) -> str:
    """Return the singular of an English noun in small letters."""
    noun = noun.rstrip("'’")
    irregular = lists.table("plural").get(noun)
    if irregular or len(noun) < 4:
        return irregular or noun
    if noun.endswith("ies") and len(noun) > 4:
        return f"{noun[:-3]}y"
    if noun.endswith(("sses", "shes", "ches", "xes")):
        return noun[:-2]
    return noun[:-1] if noun.endswith("s") and not noun.endswith(("ss", "us", "is")) else noun
