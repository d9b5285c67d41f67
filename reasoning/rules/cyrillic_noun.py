"""Russian and Ukrainian noun phrases: what a pronoun stands for, and its other cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.language.inflection import Reading, inflected, readings
from core.types import AnswerKind
from reasoning.rules.lexicon import Lexicon
from reasoning.rules.phrases import Word

ADJECTIVES = ("ADJF", "PRTF", "NPRO")
# What changes the noun after it: cut off alone, the noun would mean something else.
MODIFIERS = ("ADJF", "PRTF", "NUMR", "ADVB")
MOST_ADJECTIVES = 2


class Noun(NamedTuple):
    """Hold a noun with the adjectives before it: words[start:end]."""

    start: int
    end: int
    reading: Reading
    adjectives: tuple[str, ...]


def kind_of_lemma(lemma: str, lists: Lexicon) -> AnswerKind | None:
    """Return the kind of answer that a noun in its dictionary form stands for."""
    if lemma in lists.any_of("person_noun", "role") - lists.any_of("thing_role"):
        return "person"
    if lemma in lists.any_of("place_noun"):
        return "place"
    return "date" if lemma in lists.any_of("date_noun") else None


def pronoun_forms(word: Word, lists: Lexicon) -> tuple[Reading, ...]:
    """Return the readings of a relative pronoun, () for any other word."""
    if word.low in lists.any_of("invariant"):
        return (Reading("NPRO", "nomn", "", "", False, word.low),)
    found = readings(word.low, lists.language)
    return tuple(one for one in found if one.form in lists.any_of("relative"))


def noun_before(
    words: Sequence[Word], end: int, lists: Lexicon, forms: Sequence[Reading]
) -> Noun | None:
    """Return the noun that ends before words[end] and agrees with one of the forms."""
    word = words[end - 1]
    if not word.plain or word.low in lists.any_of("reporting"):
        return None
    nouns = [one for one in readings(word.low, lists.language) if one.pos == "NOUN"]
    fitting = [one for one in nouns if not forms or any(_agree(one, form) for form in forms)]
    if not fitting:
        return None
    start = end - 1
    adjectives: list[str] = []
    while start and end - 1 - start < MOST_ADJECTIVES and words[start - 1].plain:
        found = readings(words[start - 1].low, lists.language)
        if not any(one.pos in ("ADJF", "PRTF") for one in found[:1]):
            break
        if any(one.form in lists.any_of("relative", "interrogative", "naming") for one in found):
            break
        start -= 1
        adjectives.insert(0, words[start].low)
    if modified(words, start, lists) or _asked_for(words, start, lists):
        return None
    return Noun(start, end, fitting[0], tuple(adjectives))


def _asked_for(words: Sequence[Word], start: int, lists: Lexicon) -> bool:
    """Tell whether the question asks for the noun itself: "Какой город, …", "Кто из …"."""
    if start and words[start - 1].low in lists.any_of("question"):
        return True
    of = lists.any_of("out_of")
    asked_of = start > 1 and words[start - 2].low in lists.any_of("question")
    return asked_of and words[start - 1].low in of


def modified(words: Sequence[Word], start: int, lists: Lexicon) -> bool:
    """Tell whether the word before words[start] belongs to the same noun phrase."""
    if not start or words[start - 1].kind != "word":
        return False
    before = words[start - 1].low
    if before in lists.any_of("relative_preposition"):
        return False
    if before in lists.any_of("conjoined"):
        return True
    found = readings(before, lists.language)[:1]
    asking = lists.any_of("interrogative", "relative", "first_of")
    return any(one.pos in MODIFIERS and one.form not in asking for one in found)


def _agree(noun: Reading, form: Reading) -> bool:
    if not form.number:
        return True
    if form.number != noun.number:
        return False
    return form.number == "plur" or not form.gender or form.gender == noun.gender


def in_case(noun: Noun, words: Sequence[Word], case: str, lists: Lexicon) -> str:
    """Return "какая научная ассоциация" in a case, "" when a word has no such form."""
    language = lists.language
    reading = noun.reading
    head = inflected(
        words[noun.end - 1].low, language, "NOUN", case, reading.gender, reading.number
    )
    asking = sorted(lists.any_of("interrogative"))[0]
    parts = [asking, *noun.adjectives]
    made = []
    for part in parts:
        # An accusative follows the genitive for what is alive, else the nominative.
        pos = next((one.pos for one in readings(part, language) if one.pos in ADJECTIVES), "ADJF")
        adjusted = case
        if case == "accs" and (reading.gender != "femn" or reading.number == "plur"):
            adjusted = "gent" if reading.animate else "nomn"
        made.append(inflected(part, language, pos, adjusted, reading.gender, reading.number))
    return " ".join([*made, head]) if head and all(made) else ""
