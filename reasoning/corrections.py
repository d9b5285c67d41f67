"""Tell which earlier statement of a user a later one corrects, or says that it has changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from core.errors import ModelError
from core.language.analysis import content_terms, terms
from core.language.changes import (
    adds_another,
    begins_correction,
    marks_change,
    without_changes,
    without_correction,
)
from core.language.entities import entities
from core.language.numbering import number_of
from core.language.orders import gives_orders
from core.language.words import readings
from core.notes import Note, NoteDraft
from languages.language import find_language
from models.embeddings import Embedder
from models.vectors import Vectors
from reasoning.statements import (
    gives_time,
    is_question,
    only_remarks,
    other_person,
    stated_and_denied,
)
from reasoning.worth import MODEL, change_odds

# Content words and characters of what corrects in few words, the content words that say of what a
# statement is, and by which two that are almost the same differ; chosen, not measured.
SHORT, LONGEST, LEADING, ALIKE = 4, 60, 3, 2
# Weights of the features, the constant, and the log odds from which a statement takes the place of
# an earlier one (`scripts/train_memory.py changes`).
WEIGHTS = (2.14, 2.72, 1.19, 2.08, 2.15, 2.78, 2.87, -0.43, -0.26, -2.09, 1.58)
CONSTANT, LEAST = -4.95, -0.4
# Taken from the log odds where no word says of a change: both are shown (by left-out languages).
UNSAID = 1.3
MIDDLE = 0.85  # cosine of two sentences of one topic; chosen, not measured
CHANGED, UNCHANGED, NEVER = 1.0, -3.0, -9.0  # log odds; chosen, not measured
# A name or a quotation; what says in Chinese what something is.
VALUE = re.compile(r"(?<!^)(?<![.!?] )\b[^\W\d_a-zа-яёіїєґ]\w|[\"“«„「]|是")
# A quoted name of which more is said behind it: what ends a statement may be a value.
QUOTED = re.compile(r"[“«„《\"](\w[^”»“》\"]*)[”»“》\"](?=\W+\w+\W+\w)")
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
    return bool(named) or all(_has_number(one, language) for one in (text, earlier))


def may_correct(text: str, language: str, earlier: str) -> bool:
    """Tell whether a correction may be of a statement: it names nothing else at length."""
    own = set(content_terms(text, language))
    return len(own) <= SHORT or not own.isdisjoint(content_terms(earlier, language))


def says_change(text: str, language: str) -> bool:
    """Tell whether words of a text say that it corrects something, or that something changed."""
    return begins_correction(text, language) or marks_change(text, language)


def _has_number(text: str, language: str) -> bool:
    if DIGIT.search(text):
        return True
    return any(number_of(one) > 1 for one in terms(text, language))  # one may be any


def superseding_odds(
    draft: NoteDraft, notes: Sequence[Note], last: str, embedder: Embedder | None
) -> list[float]:
    """Return the log odds with which a statement takes the place of each earlier one.

    `last` is the id of the newest note of its conversation, "" without one.
    """
    if not notes:
        return []
    rows = pair_features(draft, notes, last, embedder)
    says = says_change(draft.content, draft.language)
    denies = rows[:, -1] > 0  # "cherry, not strawberry"
    found: list[float] = (rows @ WEIGHTS + CONSTANT - UNSAID * ~(denies | says)).tolist()
    return [
        odds if _comparable(draft, one, one.note_id == last) else NEVER
        for odds, one in zip(found, notes, strict=True)
    ]


def _comparable(draft: NoteDraft, note: Note, newest: bool) -> bool:
    """Tell whether two statements may be of one thing: of one person, unless it is named."""
    text, language = draft.content, draft.language
    if adds_another(text, language):
        return False
    if newest and begins_correction(text, language):
        return True
    quoted, others = ({*QUOTED.findall(one)} for one in (text, note.content))
    changes = says_change(text, language)
    if quoted and others and not changes and quoted.isdisjoint(others):
        return False  # each is of a thing with a name of its own
    first = content_terms(without_correction(text, language), language)[:1]
    named = not set(first).isdisjoint(content_terms(note.content, language))
    if begins_correction(text, language):
        named = named or any(one.text in note.content for one in entities(text, language))
    return named or other_person(text, language) == other_person(note.content, language)


def pair_features(
    draft: NoteDraft, notes: Sequence[Note], last: str, embedder: Embedder | None
) -> Vectors:
    """Return a row of what tells for each earlier statement whether a later one replaces it.

    Whether the later begins as a correction and has half its words of this one, or no more of
    another than of the last, and whether it does so in few words; the log odds that it says of a
    change; its similarity to the earlier one, how much less that is than the best and 10 times what
    it is above the middle; the part of the earlier one's words that it has, and whether any; the
    part of its first words that the earlier one has; whether it says almost the same, denies other
    things, or denies one of the same and gives another value.
    """
    text, language = draft.content, draft.language
    own = content_terms(without_changes(text, language), language)
    begins = begins_correction(text, language)
    change, alike = _change_and_likeness(text, language, [one.content for one in notes], embedder)
    stated, denial = stated_and_denied(text, language)
    denied = _things(content_terms(denial, language), language)
    revalued = bool(content_terms(stated, language))
    rows = []
    others = [set(content_terms(without_changes(one.content, language), language)) for one in notes]
    corrected = max(
        range(len(notes)),
        key=lambda at: (len(others[at].intersection(own)), notes[at].note_id == last, alike[at]),
    )
    for at, (other, cosine) in enumerate(zip(others, alike, strict=True)):
        shared = len(other.intersection(own))
        near = notes[at].note_id == last or 2 * shared >= len(set(own))
        corrects = begins and at == corrected and near
        rows.append(
            [
                corrects,
                corrects and len(set(own)) <= SHORT,
                change,
                cosine - max(alike),
                10 * (cosine - MIDDLE),
                shared / max(1, len(other)),
                shared > 0,
                len(other.intersection(own[:LEADING])) / LEADING,
                shared > 0 and max(len(other - set(own)), len(set(own) - other)) <= ALIKE,
                bool(denied) and denied.isdisjoint(other),
                revalued and not denied.isdisjoint(other),
            ]
        )
    return np.array(rows, dtype=float)


def _change_and_likeness(
    text: str, language: str, earlier: Sequence[str], embedder: Embedder | None
) -> tuple[float, list[float]]:
    """Return the log odds that a text says of a change, and its cosines to earlier ones.

    Words of change say it whatever the vector does, and alone without the embedder.
    """
    changes = says_change(text, language)
    if embedder is not None and embedder.model_id.startswith(MODEL):
        with suppress(ModelError):
            own, *others = embedder.embed_documents([text, *earlier])
            odds = max(change_odds(own), CHANGED) if changes else change_odds(own)
            return odds, [float(own @ one) for one in others]
    return (CHANGED if changes else UNCHANGED), [MIDDLE] * len(earlier)


def _things(words: Sequence[str], language: str) -> set[str]:
    """Return the words for things among those of a clause: all but verbs, or the last one."""
    dictionary = find_language(language).dictionary
    if not dictionary:
        return set(words[-1:])
    return {
        one for one in words if not any(each.pos in VERBS for each in readings(one, dictionary)[:1])
    }
