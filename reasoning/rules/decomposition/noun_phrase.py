"""Words by their endings: past tenses, verbs, plurals, and the kind of thing a noun names."""

from __future__ import annotations

import re

from core.types import AnswerKind
from reasoning.rules.decomposition.phrases import Word
from reasoning.rules.lexicon import Lexicon

SHORTEST = 4  # letters of a plural that its ending tells


def is_past(word: str, lists: Lexicon) -> bool:
    """Tell whether a word reads as a past tense or a participle."""
    if word in lists.any_of("not_participle"):
        return False
    return re.match(lists.known.past, word) is not None or word in lists.any_of(
        "participle", "past_verb"
    )


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
    """Return the singular of a noun in small letters, where endings tell a plural."""
    noun = noun.rstrip("'’")
    endings = lists.known.singular
    irregular = lists.table("plural").get(noun) if endings else None
    if irregular or len(noun) < SHORTEST:
        return irregular or noun
    fitting = ((plural, one) for plural, one in endings if re.search(plural, noun))
    return next((re.sub(plural, one, noun) for plural, one in fitting), noun)
