"""Where an English clause ends that describes something in the middle of a question."""

from __future__ import annotations

from collections.abc import Sequence

from reasoning.rules.lexicon import Lexicon
from reasoning.rules.noun_phrase import is_past, is_third_person, is_verb
from reasoning.rules.phrases import Word, name_end


def clause_end(
    words: Sequence[Word], start: int, before: int, lists: Lexicon, verbs: int = 0
) -> int | None:
    """Return where the clause that begins at `start` ends; None when that cannot be told.

    In "did the state whose sport is jousting make …" the main verb must follow it: `before` is
    where the description begins.
    """
    open_verb = _waits_for_verb(words, before, lists)
    place = start
    while place < len(words):
        word = words[place]
        if word.text in ",;:" and not _inside_name(words, place):
            return None if open_verb and not _verb_at(words, place + 1, lists) else place
        if word.kind == "mark" and word.text in "?!)." and not _abbreviates(words, place):
            return None if open_verb else place
        if word.text == "(":
            place = _after_bracket(words, place)
            continue
        if verbs and open_verb and _main_verb(words, place, lists):
            return place
        if verbs and place > start and _second_verb(words, start, place, lists):
            return place
        if verbs and place > start and _unclear(words, place, lists):
            return None
        verbs += _is_finite(words, place, start, lists)
        named = name_end(words, place, lists.any_of("title_word"))
        place = max(place + 1, named)
    return None if open_verb else place


def _is_finite(words: Sequence[Word], place: int, start: int, lists: Lexicon) -> bool:
    """Tell whether a word is a verb; a base form may as well be a noun, except after a pronoun."""
    word = words[place]
    if place == start and words[place - 1].low in lists.any_of("relative"):
        return is_verb(word, lists) or is_third_person(words, place, lists)
    if not is_verb(word, lists) or word.low not in lists.any_of("base_verb"):
        return is_verb(word, lists)
    return place == start or words[place - 1].low in lists.any_of("anaphor", "relative_object")


def _waits_for_verb(words: Sequence[Word], before: int, lists: Lexicon) -> bool:
    """Tell whether an inverted auxiliary before the description still waits for its verb."""
    for place in range(before - 1, -1, -1):
        if words[place].low in lists.any_of("base_verb"):
            return False
        if words[place].low in lists.any_of("inverting"):
            return True
    return False


def _verb_at(words: Sequence[Word], place: int, lists: Lexicon) -> bool:
    return place < len(words) and words[place].low in lists.any_of("base_verb")


def _main_verb(words: Sequence[Word], place: int, lists: Lexicon) -> bool:
    word, last = words[place], words[place - 1]
    articles = lists.any_of("determiner", "indefinite", "theirs")
    led = last.low in lists.any_of("inverting", "auxiliary_verb") | articles or last.low == "to"
    return word.plain and word.low in lists.any_of("base_verb") and not led


def _second_verb(words: Sequence[Word], start: int, place: int, lists: Lexicon) -> bool:
    """Tell whether a second "is", or a "did", begins the main clause."""
    word, last = words[place], words[place - 1]
    if word.low not in lists.any_of("be", "inverting"):
        return False
    joins = lists.any_of("relative", "conjoined", "either", "auxiliary_verb", "joint")
    if any(one.low in lists.any_of("embedding") for one in words[start:place]):
        return False
    return last.kind != "mark" and last.low not in joins


def _unclear(words: Sequence[Word], place: int, lists: Lexicon) -> bool:
    """Tell whether a past tense right after a name may be the main verb or not."""
    word, last = words[place], words[place - 1]
    if not (word.plain and last.named and is_past(word.low, lists)):
        return False
    following = words[place + 1].low if place + 1 < len(words) else ""
    return following not in lists.any_of("relative_preposition")


def _after_bracket(words: Sequence[Word], place: int) -> int:
    """Return the place behind a bracket that opens at `place`."""
    closing = (n for n in range(place, len(words)) if words[n].text == ")")
    return next(closing, place) + 1


def _abbreviates(words: Sequence[Word], place: int) -> bool:
    """Tell whether a full stop ends an abbreviation: "Acme Inc. opened"."""
    if words[place].text != "." or not 0 < place < len(words) - 1:
        return False
    return words[place - 1].named and words[place + 1].plain


def _inside_name(words: Sequence[Word], place: int) -> bool:
    """Tell whether a comma stands within a name: "Johnnycake, West Virginia"."""
    return 0 < place < len(words) - 1 and words[place - 1].named and words[place + 1].named
