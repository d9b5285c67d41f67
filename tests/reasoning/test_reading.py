"""The likeliest sentences are read in passages of their chunk; records and code are not."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from builders import piece
from hypothesis import given
from hypothesis import strategies as st

from core.language.sentences import sentence_spans
from core.types import Evidence
from models.embeddings import SpanPassage, Vectors
from reasoning.rules.answering.features import FEATURES, Candidate
from reasoning.rules.answering.relevance import (
    BYTES,
    LIKELIEST,
    MOST,
    PASSAGES,
    ReaderScore,
    Sentence,
    read_sentences,
)


class Recording:
    """Read nothing, keep what was given: sentence n of a passage gets n and is its own answer."""

    reads = True

    def __init__(self) -> None:
        self.passages: list[SpanPassage] = []

    def read(self, question: str, passages: Sequence[SpanPassage]) -> list[Vectors]:
        self.passages += passages
        return [
            np.array([(n, start, end) for n, (start, end) in enumerate(one.spans)], dtype="float32")
            for one in passages
        ]


def candidates(evidence: Sequence[Evidence]) -> list[Candidate]:
    return [
        Candidate(item, start, end, frozenset(), [0.0] * len(FEATURES), heads=False)
        for item in evidence
        for start, end in sentence_spans(item.text)
    ]


WORDS = st.lists(
    st.sampled_from(["Fish swim.", "Они плывут.", "鱼在游泳。", "x" * 900 + "."]), min_size=1
)


@given(st.lists(WORDS, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_passages_are_short_parts_of_one_chunk_around_the_likeliest(
    texts: list[list[str]], draw: random.Random
) -> None:
    evidence = [piece(" ".join(words), title=str(n)) for n, words in enumerate(texts)]
    found = candidates(evidence)
    odds = [draw.random() for _ in found]
    reader = Recording()
    read = read_sentences(reader, "Who swims?", found, odds)
    assert len(read) == len(found)
    assert 1 <= len(reader.passages) <= PASSAGES
    for passage in reader.passages:
        assert any(passage.text in item.text for item in evidence)
        assert len(passage.spans) == 1 or len(passage.text.encode()) <= BYTES
        assert passage.spans[0][0] == 0
        assert passage.spans[-1][1] == len(passage.text)
    best = max(range(len(found)), key=lambda place: odds[place])
    assert read[best] != ReaderScore()
    for one, candidate in zip(read, found, strict=True):
        if one.value is not None:
            assert -MOST <= one.odds <= MOST
            assert one.value == (candidate.start, candidate.end)


def test_records_and_code_are_not_read() -> None:
    reader = Recording()
    evidence = [piece("author: Ann", kind="record"), piece("swim()", kind="code")]
    found = candidates(evidence)
    assert read_sentences(reader, "Who?", found, [1.0] * len(found)) == [ReaderScore()] * len(found)
    assert reader.passages == []


def test_the_likeliest_are_few() -> None:
    reader = Recording()
    evidence = [piece(f"Sentence {number} swims.") for number in range(LIKELIEST + 4)]
    found = candidates(evidence)
    read_sentences(reader, "Who swims?", found, list(range(len(found))))
    assert [one.text for one in reader.passages] == [
        f"Sentence {LIKELIEST + 3 - number} swims." for number in range(PASSAGES)
    ]


@pytest.mark.parametrize(
    ("text", "value", "form", "odds", "holds"),
    [
        ("The pool opens at 7 in the morning.", "7 in the morning", "clock", 1.0, True),
        ("Anyone aged 14 or over may join.", "14 or over", "minimum", 1.0, True),
        ("Anyone aged 14 or over may join.", "14 or over", "minimum", -1.0, False),
        ("Anyone aged 14 or over may join.", "Anyone", "minimum", 1.0, False),
        ("The trip takes 2 hours.", "2 hours", "money", 1.0, False),
    ],
)
def test_a_number_that_is_read_is_of_the_kind_asked_for(
    text: str, value: str, form: str, odds: float, holds: bool
) -> None:
    found = candidates([piece(text)])[0]
    found.row[FEATURES.index("lacking")] = 1.0
    start = text.index(value)
    sentence = Sentence.of(
        found, odds, ReaderScore(odds, (start, start + len(value))), meaning=False, form=form
    )
    assert sentence.has_kind is holds
