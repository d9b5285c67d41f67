"""Questions about each thing of a list: the list comes first, then what is asked of an item."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.language.stopwords import stopwords
from reasoning.rules.clause_end import clause_end
from reasoning.rules.lexicon import Lexicon
from reasoning.rules.noun_phrase import is_verb, kind_of, singular
from reasoning.rules.parts import Step, asked, capitalised, slot_name
from reasoning.rules.phrases import Word, span, words_of
from reasoning.rules.relative import is_share

MOST_WORDS = 6
_NUMBER = re.compile(r"\d{1,2}")
_PLURAL = re.compile(r"[^\W\d]+s(?:['’])?$")


def fan_out_steps(text: str, lists: Lexicon, taken: set[str]) -> list[Step]:
    """Return the two steps of a question about each item of a list, or none."""
    if lists.language != "en":
        return []
    words = words_of(text)
    return _each(text, words, lists, taken) or _counted(text, words, lists, taken)


def _each(text: str, words: Sequence[Word], lists: Lexicon, taken: set[str]) -> list[Step]:
    """Take "… of each of the first five picks in X" apart."""
    for at in range(1, len(words) - 3):
        if words[at].low not in lists.any_of("each"):
            continue
        start = at + 1
        if words[start].low == "of":
            start += 1
        if words[start].low not in lists.any_of("determiner"):
            continue
        if words[at - 1].low not in lists.any_of("before_list"):
            continue
        made = _listed(text, words, at, start, lists, taken)
        if made:
            return made
    return []


def _counted(text: str, words: Sequence[Word], lists: Lexicon, taken: set[str]) -> list[Step]:
    """Take "… of the five largest banks in X" apart: the items are counted or ranked."""
    for at in range(2, len(words) - 2):
        word = words[at]
        if word.low not in lists.any_of("determiner") or not is_counted(words, at + 1, lists):
            continue
        if words[at - 1].low not in lists.any_of("before_list"):
            continue
        if is_share(words, at, lists):
            continue
        made = _listed(text, words, at, at, lists, taken)
        if made:
            return made
    return []


def is_counted(words: Sequence[Word], at: int, lists: Lexicon) -> bool:
    """Tell whether "top 5", "five largest", "last three" begins here."""
    two = words[at : at + 3]
    numbers = [_is_number(word, lists) for word in two]
    ranked = two[0].low in lists.any_of("ranking") if two else False
    return bool(numbers and (numbers[0] or (ranked and any(numbers[1:2]))))


def _is_number(word: Word, lists: Lexicon) -> bool:
    counted = _NUMBER.fullmatch(word.text) is not None and word.text not in ("0", "1")
    return counted or word.low in lists.any_of("counted")


def _listed(
    text: str, words: Sequence[Word], at: int, start: int, lists: Lexicon, taken: set[str]
) -> list[Step]:
    """Ask for the list words[start:], whose mention begins at words[at], then for an item."""
    noun = plural_noun(words, start + 1, lists)
    end = clause_end(words, start + 1, at, lists)
    if noun is None or end is None or end <= noun:
        return []
    while words[end - 1].kind == "mark" and words[end - 1].text in ".?!":
        end -= 1
    item = singular(words[noun].low, lists)
    if kind_of(item, lists) == "date":  # "in the last five years"
        return []
    before, after = text[: words[at].start], text[words[end - 1].end :]
    slot = slot_name(item, taken)
    person = kind_of(item, lists) == "person"
    first = asked(f"{'Who' if person else 'What'} are {span(text, words[start:end])}")
    second = asked(f"{before}{{{slot}}}{after}")
    return [Step(first, slot, "list"), Step(capitalised(second))]


def plural_noun(words: Sequence[Word], start: int, lists: Lexicon) -> int | None:
    """Return the place of the plural noun that a list begins with."""
    stops = lists.any_of("relative_preposition", "relative", "auxiliary_verb", "reporting")
    found = None
    for place in range(start, min(len(words), start + MOST_WORDS + 1)):
        word = words[place]
        if word.kind != "word" or word.low in stops | stopwords("en"):
            break
        if _PLURAL.match(word.text) or word.low in lists.table("plural"):
            found = place
        elif found is not None and is_verb(word, lists):
            break
    return found
