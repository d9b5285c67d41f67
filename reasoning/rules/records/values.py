"""Values of records: what stands behind a label, and the name of the record itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from core.language.analysis import terms
from core.language.stopwords import stopwords
from core.types import Evidence
from languages.language import FALLBACK
from reasoning.rules.answering.blocks import RECORD_LABEL, reads_as_sentence
from reasoning.rules.lexicon import Lexicon

RECORD_KINDS = ("record", "annotation")
LABELS = FALLBACK  # labels are names of fields, whatever the language of a record
# How well a label answers to a noun: it says it, it is said by the question, neither.
SAYS, SAID, OTHER = 1.0, 0.8, 0.0
MOST_VALUE = 80
MOST_ITEMS = 12
_ITEM = re.compile(r"[^,，;；\s][^,，;；]*")


class Field(NamedTuple):
    """Hold a value by its span in a record's text, and the label before it."""

    label: str
    start: int
    end: int


@lru_cache(maxsize=512)
def fields(text: str) -> tuple[Field, ...]:
    """Return the short values of a record's text, those of a list one by one."""
    found: list[Field] = []
    for line in re.finditer(r"[^\n]+", text):
        match = RECORD_LABEL.match(line.group())
        if match is None:
            continue
        start, said = line.start() + match.end(), line.group()[match.end() :].rstrip()
        if len(said) <= MOST_VALUE and not reads_as_sentence(said):
            label = match.group().rstrip(": ")
            items = [Field(label, start + m.start(), start + m.end()) for m in _ITEM.finditer(said)]
            found += items if len(items) <= MOST_ITEMS else []
    return tuple(found)


def label_fit(label: str, nouns: frozenset[str], said: frozenset[str]) -> float:
    """Return 0..1: whether a label says a noun asked for (`nouns`), or the question says it."""
    words = frozenset(terms(label, LABELS)) - stopwords(LABELS)
    if words & nouns:
        return SAYS
    return SAID if words and words <= said else OTHER


def labels_of(item: Evidence) -> Iterator[tuple[str, bool]]:
    """Yield the labels of a record's fields, each with whether its value is the record's name."""
    if item.kind in RECORD_KINDS:
        for label, value in item.metadata.items():
            yield label.replace("_", " "), value == item.title


def noun_terms(noun: str, language: str, lists: Lexicon) -> frozenset[str]:
    """Return the terms of a noun in small letters and of the words that mean the same."""
    wanted = set(terms(noun, language)) if noun else set()
    for synonyms in lists.synonyms:
        analysed = {term for word in synonyms for term in terms(word, lists.language)}
        if wanted & analysed:
            wanted = wanted | analysed
    return frozenset(wanted)
