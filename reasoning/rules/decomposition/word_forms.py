"""Words of a pattern in another form: singular, or the nominative of Cyrillic words."""

from __future__ import annotations

from collections.abc import Sequence

from core.language.inflection import MorphAnalysis, inflected, readings
from reasoning.rules.decomposition.noun_phrase import is_past, is_plural, singular
from reasoning.rules.decomposition.phrases import Word
from reasoning.rules.lexicon import Lexicon

ADJECTIVES = ("ADJF", "PRTF")


def said_as(
    said: str, words: Sequence[Word], form: str, agreeing: Sequence[Word], lists: Lexicon
) -> str:
    """Return words in a form; those that have none are left as they are.

    The noun of a Cyrillic phrase agrees in number with the words `agreeing`.
    """
    if not words:
        return ""
    if form == "lower":
        return said[:1].lower() + said[1:]
    if form == "one":
        return _one(said, words, lists)
    if form == "singular" or (lists.table(form) and form != "which_is"):
        mapped = lists.table(form)
        return " ".join(mapped.get(word.low) or singular(word.low, lists) for word in words)
    if lists.any_of(form):  # a list of words to leave out
        return " ".join(word.text for word in words if word.low not in lists.any_of(form))
    noun = _noun(words, agreeing, lists)
    if noun is None:
        return "" if form == "which_is" else said
    place, reading = noun
    if form == "which_is":
        key = reading.gender if reading.number != "plur" else "plur"
        return lists.table("which_is").get(key) or lists.table("which_is")["plur"]
    made = []
    for at, word in enumerate(words):
        pos = reading.pos if at == place else _adjective(word, lists)
        early = bool(pos) and word.kind == "word" and (at <= place or pos == "PRTF")
        form_of = (pos, "nomn", reading.gender, reading.number)
        known = inflected(word.low, lists.known.dictionary, *form_of) if early else ""
        capital = known.capitalize() if known and word.capital else known
        made.append(capital or word.text)
    return " ".join(made)


def noun_of(word: str, lists: Lexicon) -> str:
    """Return the dictionary form of a noun."""
    found = [one.form for one in readings(word, lists.known.dictionary) if one.pos == "NOUN"]
    listed = lists.any_of("person_noun", "place_noun", "role", "date_noun")
    return next((one for one in found if one in listed), found[0] if found else word)


def _noun(
    words: Sequence[Word], agreeing: Sequence[Word], lists: Lexicon
) -> tuple[int, MorphAnalysis] | None:
    """Return the first noun of some words, read as agrees with the others, and its place."""
    numbers = {
        one.number
        for word in agreeing
        for one in readings(word.low, lists.known.dictionary)
        if one.pos in ("ADJF", "NPRO", "PRTF")
    }
    for place, word in enumerate(words):
        found = [one for one in readings(word.low, lists.known.dictionary) if one.pos == "NOUN"]
        fitting = [one for one in found if one.number in numbers or not numbers]
        if found and not (_adjective(word, lists) and place < len(words) - 1):
            return place, (fitting or found)[0]
    return None


def _adjective(word: Word, lists: Lexicon) -> str:
    found = readings(word.low, lists.known.dictionary)[:1]
    return next((one.pos for one in found if one.pos in ADJECTIVES), "")


def _one(said: str, words: Sequence[Word], lists: Lexicon) -> str:
    """Say "airports in X" of one thing: "an airport in X"; what is no such phrase stays."""
    for place, word in enumerate(words):
        if word.kind != "word" or (place and is_past(word.low, lists)):
            break
        if word.low in lists.any_of("relative_preposition", "joint", "determiner"):
            break
        if word.plain and is_plural(word.low, lists):
            first = words[0].start
            at, end = word.start - first, word.end - first
            one = f"{said[:at]}{singular(word.low, lists)}{said[end:]}"
            return f"{'an' if one[:1].casefold() in 'aeiou' else 'a'} {one}"
    return said
