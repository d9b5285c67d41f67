"""The title of evidence as a value: the thing that its text, or its record, is about."""

from __future__ import annotations

from typing import Literal, NamedTuple

from core.language.analysis import content_terms, terms
from core.types import AnswerKind, Evidence
from reasoning.rules.fitting import noun_fit
from reasoning.rules.lexicon import lexicon
from reasoning.rules.record_values import RECORD_KINDS, SAYS, label_fit, labels_of
from reasoning.rules.value_spans import Value, plain_title, values_in

# How well a title fits a noun: the noun is in it or labels it, the text begins by calling its
# subject so, a record is what is asked for unless another field of it is.
IN_TITLE, CALLED, RECORD = 1.0, 0.6, 0.8
FIRST_WORDS = 4
NAMES = ("text", "list", "person", "place")


class Title(NamedTuple):
    """Hold a title as a value, where its span stands, and how well it fits what is asked, 0..1."""

    value: Value
    field: Literal["text", "title"]
    fit: float


def title_value(
    item: Evidence, noun: str, nouns: frozenset[str], kind: AnswerKind, said: frozenset[str]
) -> Title | None:
    """Return the title, in the text where it says it just so; None where it is no possible value.

    What the text writes small may be a word there, and no name.
    """
    plain = plain_title(item.title)
    if kind not in NAMES or len(plain) < 2 or not set(content_terms(plain, item.language)):
        return None
    said_at = [
        one
        for one in values_in(item.text, item.language, item.title)
        if one.form == "TITLE" and item.text[one.start : one.end] == plain
    ]
    placed = said_at[0] if said_at else None
    fit = _fit(item, nouns, kind, said)
    if placed is not None:
        lists = lexicon(item.language)
        fit = max(fit, noun_fit(nouns, noun, placed, item.text, item.language, lists))
        return Title(placed, "text", fit)
    start = item.title.index(plain)
    return Title(Value(start, start + len(plain), "name", "TITLE"), "title", fit)


def _fit(item: Evidence, nouns: frozenset[str], kind: AnswerKind, said: frozenset[str]) -> float:
    if nouns & set(terms(plain_title(item.title), item.language)):
        return IN_TITLE
    labels = list(labels_of(item))
    if any(named and label_fit(label, nouns, said) == SAYS for label, named in labels):
        return IN_TITLE
    other = any(label_fit(label, nouns, said) == SAYS for label, _ in labels)
    if other or kind not in ("text", "list"):
        return 0.0
    if item.kind in RECORD_KINDS:
        return RECORD
    return CALLED if item.ordinal == 0 and nouns & _first_words(item) else 0.0


def _first_words(item: Evidence) -> set[str]:
    """Return the terms of the words a text begins with: "A short book on …"."""
    begin = " ".join(item.text.split()[:FIRST_WORDS])
    return set(terms(begin, item.language))
