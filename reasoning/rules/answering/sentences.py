"""Sentences of evidence as answers: how likely each is one, and what it says of the question."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

from core.types import Evidence
from reasoning.rules.answering.features import FEATURES, Candidate

HERE, HEADING = FEATURES.index("here"), FEATURES.index("heading")
SIMILARITY = FEATURES.index("similarity")
VALUED = FEATURES.index("valued")
LACKS, FORM = FEATURES.index("lacking"), FEATURES.index("unfinished")
CODE = FEATURES.index("code")
WRITTEN = 0.5  # of its characters are letters or digits; a diagram has fewer
NUMBER, DATE = FEATURES.index("number"), FEATURES.index("date")
SHORT, NAMES = FEATURES.index("short"), FEATURES.index("names_missing")


@dataclass(frozen=True)
class Sentence:
    """Hold one scored sentence of a piece of evidence; `start` and `end` are in its text.

    `odds` are log odds against "nothing answers", `score` the same as 0..1; `lexical` is the share
    of the question's words in it, `said` in it or its heading, `semantic` its similarity.
    `matched` are the question's own words that it or its heading says, `has_kind` that it holds a
    value of the kind asked for, `is_answer` that it is more than a heading, `names_missing` that
    its passage has no name that the question says. What answers in it stands at `value` in the
    text of the evidence, where the reader has read it.
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
    value: tuple[int, int] | None = None

    @classmethod
    def of(
        cls, one: Candidate, odds: float, value: tuple[int, int] | None, *, meaning: bool
    ) -> Sentence:
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
            _is_answer(one),
            one.row[NAMES] >= 1,
            value,
        )

    @property
    def chunk_id(self) -> str:
        """Return the id of its chunk."""
        return self.evidence.chunk_id

    @property
    def text(self) -> str:
        """Return the sentence as written."""
        return self.evidence.text[self.start : self.end]


def _is_answer(one: Candidate) -> bool:
    """Tell whether a sentence is more than a heading, a line of code or a drawing."""
    if one.evidence.kind == "record":
        return True
    shown = "".join(one.evidence.text[one.start : one.end].split())
    drawn = sum(character.isalnum() for character in shown) < WRITTEN * len(shown)
    short = one.heads or (one.row[FORM] and one.row[SHORT])
    # Capitals are in any heading, and what a heading is above says more.
    valued = one.row[VALUED] and (not one.heads or one.row[NUMBER] or one.row[DATE])
    return not (drawn or (short and not valued) or one.row[CODE])
