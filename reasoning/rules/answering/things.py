"""The things that a question names: its nouns and what tells them from others of the kind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from core.language.chinese import part_of_speech, segment
from core.language.cues import stopwords
from core.language.words import readings
from reasoning.rules.decomposition.phrases import Word, is_verb, words_of
from reasoning.rules.lexicon import STEERING, Lexicon
from reasoning.rules.values.value_spans import asked_noun

ARTICLES = ("determiner", "indefinite", "theirs")
GENITIVE = "gent"
KINDS = ("n", "a")  # nouns and adjectives, in the Chinese dictionary
LEADING = (*ARTICLES, "preposition", "inverting", "be")


class Thing(NamedTuple):
    """Hold a noun of a question as written, with the words before it that go with it."""

    noun: str
    beside: tuple[str, ...] = ()


def things_asked(text: str, words: Lexicon, *, wanted: bool = False) -> list[Thing]:
    """Return the common nouns of a question, as written.

    The noun that it asks for is among them if `wanted`.
    """
    asked = "" if wanted else asked_noun(text, words)
    if not words.known.spaced:
        bare = words.remove(text, *STEERING, "number", "date", "person", "place", "question")
        pieces = (one for one, _, _ in segment(bare, "default"))
        # A word of one sign is a unit, or the half of one that the dictionary lacks.
        phrases = [[one] for one in pieces if len(one) > 1 and part_of_speech(one)[:1] in KINDS]
    else:
        found = words_of(words.remove(text, "recent", "number", "date"))
        made = (
            _by_dictionary(found, words, wanted=wanted)
            if words.known.dictionary
            else _by_place(found, words, wanted=wanted)
        )
        phrases = [[one.text for one in some] for some in made if some[-1].plain]
    extreme = re.compile("|".join(words.known.read("claims").get("extremes", ())) or "(?!)")
    things = [
        Thing(some[-1], tuple(one for one in some[:-1] if not extreme.match(one.casefold())))
        for some in phrases
    ]
    return [one for one in dict.fromkeys(things) if one.noun.casefold() != asked]


def _by_dictionary(found: list[Word], words: Lexicon, *, wanted: bool) -> Iterator[list[Word]]:
    """Yield each noun with the adjectives right before it, but one that another noun explains."""
    read = [_read(one, words) for one in found]
    phrase: list[Word] = []
    asked = False  # "какой штраф": the noun is what is asked for
    following = [*read[1:], ("", "")]
    behind = [*found[1:], None]
    for one, (kind, _), then, after in zip(found, read, following, behind, strict=False):
        named = after is not None and after.text[:1].isupper()  # "в городе Кедрогорске"
        if kind == "NOUN" and then != ("NOUN", GENITIVE) and not (named or (asked and not wanted)):
            yield [*phrase, one]
        asked = words.found("question", one.text) or (asked and kind == "ADJF")
        phrase = [*phrase, one] if kind == "ADJF" else []


def _read(word: Word, words: Lexicon) -> tuple[str, str]:
    """Return the part of speech and the case of a word, "" for a small one."""
    found = readings(word.low, words.known.dictionary)[:1]
    small = word.low in stopwords(words.language) or words.found("question", word.text)
    return (found[0].pos, found[0].case) if found and not small else ("", "")


def _by_place(found: list[Word], words: Lexicon, *, wanted: bool) -> Iterator[list[Word]]:
    """Yield each phrase behind an article, a preposition or an auxiliary.

    Before "of" stands what is asked for, which counts if `wanted` and told from its like: "the day
    manager of the hotel".
    """
    leading = words.any_of(*LEADING) - words.any_of("infinitive")
    inverting = words.any_of("inverting")
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
        belongs = one is not None and one.low in words.any_of("belonging")
        if phrase and (not belongs or (wanted and len(phrase) > 1)):
            yield phrase
        first = one is not None and one.low in articles
        opens = one is not None and (one.low in inverting or (leads and not one.start))
        brings = opens or (brings and first and not phrase)
        led, phrase = leads, []
