"""Tell which earlier statement of a user a later one corrects, or says that it has changed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.language.analysis import content_terms
from core.language.changes import (
    adds_another,
    begins_correction,
    marks_change,
    names_several,
    without_correction,
)
from core.language.orders import gives_orders
from core.language.words import readings
from core.notes import CORRECTION, Note, NoteDraft
from languages.language import find_language
from reasoning.rules.lexicon import lexicon
from reasoning.statements import (
    gives_time,
    is_question,
    only_remarks,
    other_person,
    stated_and_denied,
)

# Content words and characters of what corrects in few words, the words in common that tell that two
# statements are of one thing, and those that say of what (by `benchmarks/memory_talks.jsonl`).
SHORT, LONGEST, SHARED, LEADING = 4, 60, 2, 3
# A name or a quotation; what says in Chinese what something is.
VALUE = re.compile(r"(?<!^)(?<![.!?] )\b[^\W\d_a-zа-яёіїєґ]\w|[\"“«„「]|是")
VERBS = ("VERB", "INFN")
DIGIT = re.compile(r"\d")


def gives_other_value(text: str, language: str, earlier: str) -> bool:
    """Tell whether a text only corrects the value that a statement gives: "No, 5 June."."""
    fits = len(text) <= LONGEST and begins_correction(text, language)
    if not fits or is_question(text, language) or gives_orders(text, 0, len(text)):
        return False
    if only_remarks(text):
        return False
    if gives_time(text, language) and gives_time(earlier, language):
        return True
    named = VALUE.search(text) and (VALUE.search(earlier) or not find_language(language).spaced)
    return bool(named or (DIGIT.search(text) and DIGIT.search(earlier)))


def takes_place_of(draft: NoteDraft, note: Note, *, last: bool, nearest: bool) -> bool:
    """Tell whether a statement takes the place of an earlier one.

    `last` is the newest of its conversation, `nearest` the one likest it of all.
    """
    text, language = draft.content, draft.language
    begins = begins_correction(text, language)
    own, other = (set(content_terms(one.content, language)) for one in (draft, note))
    points = len(own) <= SHORT or lexicon(language).search("pronoun", text) is not None
    if last and begins and (points or CORRECTION in draft.tags):
        return True
    if language != note.language or adds_another(text, language):
        return False
    shared = len(own & other)
    first = set(content_terms(without_correction(text, language), language)[:1])
    if other_person(text, language) != other_person(note.content, language) and not first & other:
        return False  # they may be known by name
    if not begins and names_several(note.content, language) and 2 * shared < len(other):
        return False  # of several things it changes one
    stated, denial = stated_and_denied(text, language)
    denied = content_terms(denial, language)
    if denied and not begins and other.isdisjoint(_things(denied, language)):
        return False
    # What only denies contradicts; what gives another value beside it takes its place.
    other_value = bool(denied) and bool(content_terms(stated, language))
    surely = begins or other_value or marks_change(text, language, surely=True)
    if not begins and _leads(text, language).isdisjoint(other):
        return False  # "The build server has …" is not of the mail server
    if surely:
        return shared >= SHARED or (nearest and shared > 0)
    return shared >= SHARED and marks_change(text, language)


def shared_words(draft: NoteDraft, note: Note) -> int:
    """Return how many content words two statements have in common."""
    own, other = (set(content_terms(one.content, draft.language)) for one in (draft, note))
    return len(own & other)


def _leads(text: str, language: str) -> set[str]:
    """Return the words that a statement begins with, which mostly say of what it is."""
    return set(content_terms(text, language)[:LEADING])


def _things(words: Sequence[str], language: str) -> set[str]:
    """Return the words for things among those of a clause: all but verbs, or the last one."""
    dictionary = find_language(language).dictionary
    if not dictionary:
        return set(words[-1:])
    return {
        one for one in words if not any(each.pos in VERBS for each in readings(one, dictionary)[:1])
    }
