"""Which channel is believed for one query, and why (SPEC T3, T5)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from candidate_builders import candidates
from fakes import FakeEmbedder
from hypothesis import given
from hypothesis import strategies as st

from core.auth import AuthContext
from core.settings import Settings
from retrievers.kinds import query_kind
from retrievers.trust import judge_vectors
from retrievers.types import Query
from retrievers.weights import best_distance, decide_weights

SETTINGS = Settings()
QUERY = Query("Where is the harbour?", AuthContext(tenant="acme"), language="en")


def test_a_channel_that_stands_out_is_trusted() -> None:
    """Six deviations above a thousand rows, and the best hit by words is the best vector."""
    trust = judge_vectors(candidates([9.0, 1.0], [0.7, 0.2]), SETTINGS)
    assert trust.share == 1.0
    assert trust.peak == pytest.approx(6 / math.sqrt(2 * math.log(1000)), rel=1e-3)


def test_a_channel_that_knows_nothing_of_the_words_is_not() -> None:
    """The best vector is where chance would have it, and hits by words are like any other row."""
    found = candidates([9.0, 8.0, 7.0, 0.0], [0.1, 0.11, 0.09, 0.38])
    trust = judge_vectors(found, SETTINGS)
    assert trust.peak < SETTINGS.trust_peak
    assert abs(trust.agreement) < 0.1
    assert trust.share == 0.0


def test_a_question_in_other_words_than_the_documents_keeps_its_vectors() -> None:
    """Words and vectors disagree, but one hit stands out far: words are what failed."""
    trust = judge_vectors(candidates([2.0, 1.9, 0.0], [0.1, 0.1, 0.75]), SETTINGS)
    assert trust.agreement < 0.1
    assert trust.share == 1.0


def test_a_broad_question_keeps_its_vectors() -> None:
    """Nothing stands out, but the hits by words are the best vectors."""
    trust = judge_vectors(candidates([2.0, 1.9, 1.8], [0.45, 0.44, 0.43]), SETTINGS)
    assert trust.peak < 1.0
    assert trust.share > 0.9


@pytest.mark.parametrize(
    "found",
    [
        candidates([1.0, 0.5], [0.1, 0.2], visible=10),
        candidates([1.0, 0.5]),
        candidates([0.0, 0.0], [0.1, 0.2]),
        candidates([1.0, 0.5], [0.1, 0.1], deviation=0.0),
    ],
    ids=["too few rows", "no vectors", "no words", "all alike"],
)
def test_where_nothing_can_be_told_the_channel_is_trusted(found) -> None:
    assert judge_vectors(found, SETTINGS).share == 1.0


@given(
    st.lists(st.tuples(st.floats(0, 20), st.floats(-1, 1)), min_size=1, max_size=8),
    st.floats(0.01, 0.5),
    st.integers(3, 100_000),
)
def test_trust_is_a_share(rows, deviation, visible) -> None:
    found = candidates(*zip(*rows, strict=True), deviation=deviation, visible=visible)
    assert 0.0 <= judge_vectors(found, SETTINGS).share <= 1.0
    assert 0.0 <= decide_weights(found, QUERY, SETTINGS).vector <= 1.0


def test_the_specified_weights_hold_for_a_healthy_search() -> None:
    weights = decide_weights(candidates([9.0, 1.0], [0.7, 0.2]), QUERY, SETTINGS)
    assert weights.vector == pytest.approx(0.6)
    assert weights.notes == []


def test_a_channel_that_found_nothing_gives_its_weight_away() -> None:
    assert decide_weights(candidates([0.0], [0.7]), QUERY, SETTINGS).vector == 1.0
    assert decide_weights(candidates([2.0]), QUERY, SETTINGS).vector == 0.0


def test_weak_vectors_lose_the_greater_weight() -> None:
    """T5: without a hit that is nearer than unrelated texts the lexical weight is 0.6."""
    found = candidates([9.0, 1.0], [0.001, 0.0], mean=0.0, deviation=0.0001)
    weights = decide_weights(found, QUERY, SETTINGS, FakeEmbedder())
    assert best_distance(found, QUERY, FakeEmbedder()) == pytest.approx(0.999, abs=1e-3)
    assert weights.vector == pytest.approx(0.4)
    assert "weak" in weights.notes[0]


def test_a_channel_that_lost_weight_says_so() -> None:
    found = candidates([9.0, 8.0, 7.0, 0.0], [0.1, 0.11, 0.09, 0.3])
    weights = decide_weights(found, QUERY, SETTINGS)
    assert weights.vector == 0.0
    assert "agreement" in weights.notes[0]
    off = Settings(trust_vectors=False)
    assert decide_weights(found, QUERY, off).vector == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("text", "language", "kind"),
    [
        ("jax.lax.scan carry argument", "en", "identifier"),
        ("use of DataLoader", "en", "identifier"),
        ("What is automatic differentiation?", "en", "concept"),
        ("Что такое градиент?", "ru", "concept"),
        ("books about physics for children", "en", "general"),
    ],
)
def test_the_kind_of_a_query(text, language, kind) -> None:
    assert query_kind(text, language) == kind


def test_weights_by_kind_are_a_choice() -> None:
    by_kind = Settings(weights_by_kind=True)
    found = candidates([9.0, 1.0], [0.7, 0.2])
    asked = {
        kind: decide_weights(found, Query(text, QUERY.auth, language="en"), by_kind).vector
        for kind, text in (
            ("identifier", "jax.lax.scan"),
            ("concept", "what is a harbour"),
            ("general", "harbour fees"),
        )
    }
    assert asked == {"identifier": 0.6, "concept": 0.8, "general": 0.7}


def test_the_best_distance_ignores_chunks_without_a_vector() -> None:
    def distance(*given: list[float]) -> float | None:
        return best_distance(candidates(*given), QUERY, FakeEmbedder())

    assert distance([1.0, 1.0], [np.nan, 0.25]) == pytest.approx(0.75)
    assert distance([1.0], [np.nan]) is None
    assert distance([1.0]) is None
