"""The things that a question names: its nouns, but the one it asks for and names."""

from __future__ import annotations

from collections.abc import Iterator

from core.language.cues import stopwords
from core.language.words import readings
from reasoning.rules.decomposition.phrases import Word, is_verb, words_of
from reasoning.rules.lexicon import Lexicon
from reasoning.rules.values.value_spans import asked_noun

LEADING = ("determiner", "indefinite", "theirs", "addressed", "preposition", "inverting", "be")


def things_asked(text: str, words: Lexicon) -> list[str]:
    """Return the common nouns of a question as written; none where its language tells no nouns."""
    if not words.known.spaced:
        return []
    found = words_of(text)
    wanted = asked_noun(text, words)
    heads = _by_dictionary(found, words) if words.known.dictionary else _by_place(found, words)
    return list(dict.fromkeys(one.text for one in heads if one.plain and one.low != wanted))


def _by_dictionary(found: list[Word], words: Lexicon) -> Iterator[Word]:
    for one in found:
        read = readings(one.low, words.known.dictionary)
        if read and read[0].pos == "NOUN" and not words.found("question", one.text):
            yield one


def _by_place(found: list[Word], words: Lexicon) -> Iterator[Word]:
    """Yield the last word of each phrase behind an article, a preposition or an auxiliary."""
    leading = words.any_of(*LEADING)
    articles, small = words.any_of("determiner", "indefinite", "theirs"), stopwords(words.language)
    head, inside, first = None, False, False
    for one in [*found, None]:
        led = one is not None and one.low in leading
        ends = one is None or led or one.kind != "word" or one.low in small
        if not ends and one is not None and inside and (first or not is_verb(one, words)):
            head, first = one, False
            continue
        if head is not None:
            yield head
        head, inside = None, led
        first = led and one is not None and one.low in articles
