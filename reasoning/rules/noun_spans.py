"""Common noun phrases of English texts: "the lookup API", "an access log"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.language.analysis import terms
from core.language.stopwords import stopwords
from reasoning.rules.lexicon import Lexicon
from reasoning.rules.noun_phrase import is_past, is_verb, singular
from reasoning.rules.phrases import POSSESSIVE, Word, words_of
from reasoning.rules.value_spans import Value

ENGLISH = "en"
COMMON = "COMMON"
MOST_WORDS = 6


def noun_phrases(
    text: str, start: int, end: int, nouns: frozenset[str], lists: Lexicon
) -> Iterator[Value]:
    """Yield the phrases of text[start:end] that a determiner leads in, without it.

    A phrase ends with the last of the `nouns` asked for, else before what cannot belong to it.
    """
    if lists.language != ENGLISH:
        return
    words = words_of(text[start:end])
    for place, word in enumerate(words):
        if word.low in lists.any_of("determiner", "indefinite", "theirs"):
            stop = _phrase_end(words, place + 1, nouns, lists)
            if stop > place + 1:
                begin, until = words[place + 1].start, words[stop - 1].end
                yield Value(start + begin, start + until, "phrase", COMMON)


def _phrase_end(words: Sequence[Word], start: int, nouns: frozenset[str], lists: Lexicon) -> int:
    end = start
    while end < len(words) and end - start < MOST_WORDS and _inside(words, start, end, lists):
        end += 1
    for place in range(end - 1, start - 1, -1):
        if nouns & set(terms(words[place].text, ENGLISH)):
            return place + 1
    while end > start and is_past(words[end - 1].low, lists) and words[end - 1].plain:
        end -= 1
    return end


def _inside(words: Sequence[Word], start: int, place: int, lists: Lexicon) -> bool:
    """Tell whether a word may go on a phrase that begins at `start`."""
    word = words[place]
    if word.kind not in ("word", "quoted") or word.low in stopwords(ENGLISH):
        return False
    if place > start and POSSESSIVE.search(words[place - 1].text):
        return False
    if not word.plain:
        return True
    if is_past(word.low, lists):
        return place == start and word.low not in lists.any_of("auxiliary_verb")
    if word.low in lists.any_of("relative", "relative_preposition", "conjoined", "either", "joint"):
        return False
    return place == start or not _acts(words, place, lists)


def _acts(words: Sequence[Word], place: int, lists: Lexicon) -> bool:
    """Tell whether a word reads as a verb here: "sends" before "the", a number, a name."""
    word = words[place]
    if is_verb(word, lists) and word.low not in lists.any_of("base_verb"):
        return True
    if singular(word.low, lists) == word.low:
        return False
    if singular(word.low, lists) in lists.any_of("base_verb"):
        return True
    following = words[place + 1] if place + 1 < len(words) else None
    if following is None or following.kind == "mark":
        return False
    led = lists.any_of("determiner", "indefinite", "theirs", "each", "anaphor", "these")
    return following.low in led or following.named or is_plain_object(following, lists)


def is_plain_object(word: Word, lists: Lexicon) -> bool:
    """Tell whether a word after a possible verb reads as its object: "sends money"."""
    small = stopwords(ENGLISH) | lists.any_of("auxiliary_verb", "relative_preposition")
    return word.plain and word.low not in small and not is_verb(word, lists)


def within_name(name: Value, phrases: Sequence[Value], text: str, lists: Lexicon) -> Value | None:
    """Return the phrase that an abbreviation ends ("the lookup API"), None where it stands alone.

    What only says what the name stands for ("the band ABBA") is no part of it.
    """
    if name.form != "ABBREVIATION":
        return None
    kinds = lists.any_of("person_noun", "place_noun", "work", "role", "role_office")
    kinds |= lists.any_of("place_or_group", "naming")
    for phrase in phrases:
        if phrase.end == name.end and phrase.start < name.start:
            before = words_of(text[phrase.start : name.start])
            if before and all(word.plain for word in before) and before[-1].low not in kinds:
                return phrase
    return None
