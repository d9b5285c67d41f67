"""Sentences of evidence as answers: how likely each is one, and what it says of the question."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

from core.types import Evidence
from reasoning.rules.features import FEATURES, Candidate, heading_of, terms_of
from reasoning.rules.wanted import Wanted

HERE, HEADING = FEATURES.index("here"), FEATURES.index("heading")
SIMILARITY = FEATURES.index("similarity")
VALUED = FEATURES.index("valued")
LACKS, FORM = FEATURES.index("lacking"), FEATURES.index("unfinished")
SHORT, NAMES = FEATURES.index("short"), FEATURES.index("names_missing")


@dataclass(frozen=True)
class Sentence:
    """Hold one scored sentence of a piece of evidence; `start` and `end` are in its text.

    `odds` are log odds against "nothing answers", `score` the same as 0..1; `lexical` is the share
    of the question's words in it, `said` in it or its heading, `semantic` its similarity.
    `matched` are the question's own words that it or its heading says, `has_kind` that it holds a
    value of the kind asked for, `is_answer` that it is more than a heading, `names_missing` that
    its passage has no name that the question says. `field` tells that it is what a question asks
    for of a record that it names.
    """

    evidence: Evidence
    start: int
    end: int
    odds: float
    score: float
    lexical: float
    said: float
    semantic: float | None
    matched: frozenset[int]
    has_kind: bool
    is_answer: bool = True
    names_missing: bool = False
    field: bool = False

    @classmethod
    def of(cls, one: Candidate, odds: float, *, meaning: bool) -> Sentence:
        """Put a candidate beside its odds."""
        return cls(
            one.evidence,
            one.start,
            one.end,
            odds,
            1 / (1 + exp(-odds)),
            one.row[HERE],
            one.row[HERE] + one.row[HEADING],
            one.row[SIMILARITY] if meaning else None,
            one.matched,
            not one.row[LACKS],
            one.evidence.kind == "record"
            or bool(one.row[VALUED])
            or not (one.row[FORM] and one.row[SHORT]),
            one.row[NAMES] >= 1,
        )

    @property
    def chunk_id(self) -> str:
        """Return the id of its chunk."""
        return self.evidence.chunk_id

    @property
    def text(self) -> str:
        """Return the sentence as written."""
        return self.evidence.text[self.start : self.end]


def subject_fit(wanted: Wanted, sentence: Sentence) -> float:
    """Return the share of the subject's words in a sentence and the headings above it, 0..1."""
    if not wanted.subject:
        return 1.0
    item = sentence.evidence
    present = terms_of(sentence.text, item.language) | terms_of(heading_of(item), item.language)
    return len(wanted.subject & present) / len(wanted.subject)
