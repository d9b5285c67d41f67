"""Fusion: its formulas by hand, what holds for any scores, and that no channel spoils another."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from fakes import FakeEmbedder, document, write
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from core.auth import AuthContext
from retrievers.fusion import (
    TAIL,
    best_mask,
    proportion,
    standardise,
)
from retrievers.pipelines import run_pipeline
from retrievers.types import Index, Query
from stores.sqlite.catalogue import Collection
from stores.store import Store

numbers = st.integers(-1000, 1000).map(lambda n: n / 8)
scores = st.integers(0, 8).flatmap(lambda n: arrays(np.float64, n, elements=numbers))
pairs = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        arrays(np.float64, n, elements=numbers), arrays(np.float64, n, elements=numbers)
    )
)


def test_standardise_by_hand() -> None:
    found = standardise(np.array([0.8, 0.5, 0.2]), 0.2, 0.05, rows=10_000)
    assert found == pytest.approx([2.0, 1.0, 0.0])  # 12, 6 and 0 deviations over TAIL
    assert TAIL == 6.0


def test_the_best_of_few_rows_can_reach_one() -> None:
    """Of n numbers one can lie sqrt(n - 1) deviations from their mean, and no further."""
    rows = np.array([1.0, 0.0, 0.0, 0.0])
    found = standardise(rows, float(rows.mean()), float(rows.std()), rows=len(rows))
    assert found[0] == pytest.approx(1.0)


def test_scores_that_do_not_differ_stand_out_from_nothing() -> None:
    assert standardise(np.array([0.5, 0.5]), 0.5, 0.0, rows=2).tolist() == [0.0, 0.0]


def test_proportion_by_hand() -> None:
    """In 50 texts a word of its own is worth log 51, about 3.9."""
    assert proportion(np.array([8.0, 2.0, 0.0]), 50).tolist() == [1.0, 0.25, 0.0]
    assert proportion(np.array([2.0, 0.0]), 50) == pytest.approx([2 / np.log(51), 0.0])
    assert proportion(np.array([0.0, 0.0]), 0).tolist() == [0.0, 0.0]
    assert proportion(np.array([]), 50).tolist() == []


@pytest.mark.parametrize(
    ("limit", "least", "expected"),
    [
        (2, 0.0, [True, False, True, False]),
        (9, 0.0, [True, True, True, False]),
        (1, 0.0, [True, False, False, False]),  # of a tie the earlier
        (9, 2.0, [True, False, True, False]),
    ],
)
def test_the_best_of_a_channel(limit, least, expected) -> None:
    assert best_mask(np.array([3.0, 1.0, 3.0, 0.0]), limit, least).tolist() == expected


@given(scores.map(np.abs), st.integers(0, 10_000))
def test_proportions_are_between_0_and_1_in_the_order_of_the_scores(one, rows) -> None:
    shares = proportion(one, rows)
    assert ((shares >= 0) & (shares <= 1)).all()
    assert np.argsort(shares, kind="stable").tolist() == np.argsort(one, kind="stable").tolist()


@given(pairs, st.integers(1, 5000))
def test_the_fewer_words_are_found_the_less_they_change(both, rows) -> None:
    """Two words of ten never move a candidate further than all ten of them."""
    text = np.abs(both[1])
    few = np.abs(0.4 * proportion(text / 5, rows))
    many = np.abs(0.4 * proportion(text, rows))
    assert (few <= many + 1e-9).all()


@given(pairs, st.data(), st.integers(1, 2000).map(lambda n: n / 8))
def test_a_nearer_vector_never_lowers_the_place(both, data, gain) -> None:
    one, two = both
    row = data.draw(st.integers(0, len(one) - 1))
    better = one.copy()
    better[row] += gain

    def ahead(vector) -> set[int]:
        spread = standardise(vector, 0.0, 50.0, rows=100)
        fused = 0.6 * spread + 0.4 * proportion(np.abs(two), 100)
        return set(np.flatnonzero(fused > fused[row] + 1e-9).tolist())

    assert ahead(better) <= ahead(one)


@given(scores, st.integers(1, 100).map(lambda n: n / 4), st.integers(-100, 100))
def test_the_scale_of_the_cosines_does_not_matter(one, factor, shift) -> None:
    if len(one) and one.max() > one.min():
        mean, deviation = float(one.mean()), float(one.std())
        own = standardise(one, mean, deviation, rows=50)
        scaled = one * factor + shift
        other = standardise(scaled, mean * factor + shift, deviation * factor, rows=50)
        assert other == pytest.approx(own)


ANN = AuthContext(tenant="acme")
DOCUMENTS = 150
WORDS = [f"{first}{second}" for first in "bdfgklmnprst" for second in ("ano", "elo", "iru", "omi")]


def texts() -> list[str]:
    chooser = random.Random(5)
    return [" ".join(chooser.sample(WORDS, 12)) for _ in range(DOCUMENTS)]


def found_first(index: Index, questions: Sequence[tuple[str, str]], pipeline: str) -> float:
    """Return the share of questions whose document comes first."""
    hits = [
        run_pipeline(index, Query(text, ANN, language="en"), pipeline, 5).evidence[0].document_id
        == name
        for name, text in questions
    ]
    return sum(hits) / len(hits)


@pytest.fixture
def questions(store: Store, collection: Collection) -> list[tuple[str, str]]:
    chooser = random.Random(6)
    return [(f"d{n}", " ".join(chooser.sample(text.split(), 5))) for n, text in enumerate(texts())][
        :60
    ]


def indexed(store: Store, collection: Collection, embedder: FakeEmbedder, settings) -> Index:
    rows = [document(collection, f"d{n}", text) for n, text in enumerate(texts())]
    write(store, collection, rows, embedder)
    return Index(store, collection, embedder, settings)


def test_words_nobody_wrote_leave_a_search_by_vectors_as_good_as_it_is(
    store: Store, collection: Collection, index, questions
) -> None:
    """The questions are in other words than the documents; only the model knows they are alike."""

    class Translating(FakeEmbedder):
        def embed_query(self, text: str) -> np.ndarray:
            return super().embed_query(text.replace("x", ""))

    model = Translating()
    known = indexed(store, collection, model, index().settings)
    foreign = [(name, " ".join(f"x{word}" for word in text.split())) for name, text in questions]
    vectors = found_first(known, foreign, "vector")
    assert vectors > 0.6
    assert found_first(known, foreign, "hybrid") == vectors
