"""The title of evidence as a value: the thing that its text, or its record, is about."""

from __future__ import annotations

from core.language.analysis import content_terms, terms
from core.types import AnswerKind, Evidence
from reasoning.rules.records.values import RECORD_KINDS, SAYS, label_fit, labels_of
from reasoning.rules.values.value_spans import ValueSpan, plain_title

# How well a title fits a noun: the noun is in it or labels it, the text begins by calling its
# subject so, a record is what is asked for unless another field of it is.
IN_TITLE, CALLED, RECORD = 1.0, 0.6, 0.8
FIRST_WORDS = 4
NAMES = ("text", "list", "person", "place")


def title_value(item: Evidence) -> ValueSpan | None:
    """Return the span of a title without what stands in brackets; None where it says nothing."""
    plain = plain_title(item.title)
    if len(plain) < 2 or not content_terms(plain, item.language):
        return None
    start = item.title.index(plain)
    return ValueSpan(start, start + len(plain), "name", "TITLE")


def title_fit(
    item: Evidence, nouns: frozenset[str], kind: AnswerKind, said: frozenset[str]
) -> float:
    """Return how well a title is what is asked for by the terms of a noun, 0..1."""
    if kind not in NAMES:
        return 0.0
    if nouns & set(terms(plain_title(item.title), item.language)):
        return IN_TITLE
    fits = [(label_fit(label, nouns, said) == SAYS, named) for label, named in labels_of(item)]
    if any(fit and named for fit, named in fits):
        return IN_TITLE
    if any(fit for fit, _ in fits) or kind not in ("text", "list"):
        return 0.0
    if item.kind in RECORD_KINDS:
        return RECORD
    first = set(terms(" ".join(item.text.split()[:FIRST_WORDS]), item.language))
    return CALLED if item.ordinal == 0 and nouns & first else 0.0  # "A short book on …"
