"""How sure it is that a question is plain, or that it has parts: simple rules, no model."""

from __future__ import annotations

from collections.abc import Sequence

from core.language.analysis import content_terms
from core.types import Part
from reasoning.rules.lexicon import Lexicon
from reasoning.rules.understanding.topic import entities

# Parts that wait for each other were found by clear words; parts side by side less so.
CHAINED, BESIDE = 0.9, 0.8
# What each sign of a hidden second question takes from the confidence that a question is plain.
NAME, MOST_NAMES = 0.15, 3
MARKER, SAME, LONG = 0.2, 0.3, 0.15
LONG_WORDS = 12


def kind_confidence(question: str, parts: Sequence[Part], lists: Lexicon) -> float:
    """Return 0..1: how sure the kind of a question is.

    A plain question is less sure with each name beyond its first, with a word that begins a
    description, with a word that compares, and when it is long.
    """
    if len(parts) > 1:
        return CHAINED if any(part.deps for part in parts) else BESIDE
    names = len(entities(question, lists))
    sure = 1.0 - NAME * min(MOST_NAMES, max(0, names - 1))
    inner = question[1:].lstrip()
    if lists.found("described", inner):
        sure -= MARKER
    if lists.found("same", question) or lists.found("both", question):
        sure -= SAME
    if len(set(content_terms(question, lists.language))) > LONG_WORDS:
        sure -= LONG
    return round(max(0.0, sure), 2)
