"""The things that a question names: its nouns, but the one it asks for and names."""

from __future__ import annotations

from collections.abc import Iterator

from core.language.cues import stopwords
from core.language.words import readings
from reasoning.rules.decomposition.phrases import Word, is_verb, words_of
from reasoning.rules.lexicon import Lexicon
from reasoning.rules.values.value_spans import asked_noun

ARTICLES = ("determiner", "indefinite", "theirs")
LEADING = (*ARTICLES, "preposition", "inverting", "be")


def things_asked(text: str, words: Lexicon, *, wanted: bool = False) -> list[str]:
    """Return the common nouns of a question as written; none where its language tells no nouns.

    The noun that it asks for is among them if `wanted`.
    """
    if not words.known.spaced:
        return []
    found = words_of(text)
    asked = "" if wanted else asked_noun(text, words)
    heads = _by_dictionary(found, words) if words.known.dictionary else _by_place(found, words)
    return list(dict.fromkeys(one.text for one in heads if one.plain and one.low != asked))


def _by_dictionary(found: list[Word], words: Lexicon) -> Iterator[Word]:
    for one in found:
        read = readings(one.low, words.known.dictionary)
        if read and read[0].pos == "NOUN" and not words.found("question", one.text):
            yield one


def _by_place(found: list[Word], words: Lexicon) -> Iterator[Word]:
    """Yield the last noun of each phrase behind an article, a preposition or an auxiliary."""
    leading, inverting = words.any_of(*LEADING), words.any_of("inverting")
    articles, small = words.any_of(*ARTICLES), stopwords(words.language)
    phrase: list[Word] = []
    led = first = brings = False
    for one in [*found, None]:
        verb = one is not None and is_verb(one, words) and not first
        leads = one is not None and one.low in leading
        if one is not None and led and not (verb or leads) and one.kind == "word":
            if one.low not in small:
                phrase.append(one)
                first = False
                continue
        # "Where do the tyres hang?", "Is the wood free?": what comes last is no noun.
        if brings and not verb and len(phrase) > 1:
            phrase.pop()
        yield from phrase[-1:]
        first = one is not None and one.low in articles
        opens = one is not None and (one.low in inverting or (leads and not one.start))
        brings = opens or (brings and first and not phrase)
        led, phrase = leads, []
