"""Candidates become one ranking."""

from __future__ import annotations

import numpy as np
import pytest
from candidate_builders import candidates
from hypothesis import given
from hypothesis import strategies as st

from core.settings import Settings
from retrievers.fusion import SENTENCE, TEXT, VECTOR, rank_candidates

BOTH = {VECTOR: 10, TEXT: 10}


def ranked(found, limits=BOTH, weight=0.6, cutoff=0.0, **changes):
    settings = Settings(weight_vector=weight, **changes)
    return rank_candidates(found, settings, limits, cutoff=cutoff)


def order(found, **given_values) -> list[str]:
    return [key for key, _ in ranked(found, **given_values).ranking]


def test_standardised_fusion_by_hand() -> None:
    """a: 0.6 · (6 deviations / 6) + 0.4 · 1/4; b: 0.6 · 3/6 + 0.4 · 1; c: 0.6 · 0 + 0.4 · 0."""
    found = candidates([2.0, 8.0, 0.0], [0.7, 0.4, 0.1])
    assert dict(ranked(found).ranking) == pytest.approx({"a": 0.7, "b": 0.7, "c": 0.0}, abs=1e-6)


def test_one_channel_keeps_its_own_scores_and_ties_go_by_order() -> None:
    found = candidates([2.0, 8.0, 8.0, 0.0])
    assert ranked(found, limits={TEXT: 10}).ranking == [("b", 8.0), ("c", 8.0), ("a", 2.0)]
    found = candidates([0.0, 0.0], [0.25, 0.5])
    assert ranked(found, limits={VECTOR: 10}).ranking == [("b", 0.5), ("a", 0.25)]


def test_each_channel_proposes_its_best_only() -> None:
    found = candidates([9.0, 1.0, 8.0, 0.0], [0.1, 0.2, 0.3, 0.9])
    assert set(order(found, limits={VECTOR: 1, TEXT: 1})) == {"a", "d"}
    assert set(order(found, limits={VECTOR: 2, TEXT: 1})) == {"a", "c", "d"}


def test_hits_by_words_far_below_the_best_are_dropped() -> None:
    found = candidates([10.0, 3.0, 2.9, 0.0], [0.1, 0.1, 0.1, 0.5])
    assert set(order(found, limits={VECTOR: 1, TEXT: 9}, cutoff=0.3)) == {"a", "b", "d"}


def test_a_chunk_without_a_vector_is_found_by_its_words() -> None:
    found = candidates([5.0, 1.0], [np.nan, 0.5])
    both = ranked(found)
    assert {key for key, _ in both.ranking} == {"a", "b"}
    assert all(np.isfinite(score) for _, score in both.ranking)
    assert order(found, limits={VECTOR: 9}) == ["b"]


def test_the_best_sentence_counts_as_much_as_the_chunk() -> None:
    found = candidates([0.0, 0.0], [0.5, 0.4], sentence=[0.5, 0.8])
    assert order(found, limits={VECTOR: 9}) == ["b", "a"]
    assert order(found, limits={VECTOR: 9}, channel_sentences=False) == ["a", "b"]
    assert ranked(found, limits={VECTOR: 9}).channels[SENTENCE]["b"] == pytest.approx(0.8)


def test_raw_scores_of_each_channel_are_kept() -> None:
    channels = ranked(candidates([2.0, 0.0], [0.75, 0.5])).channels
    assert channels[TEXT] == {"a": 2.0}
    assert channels[VECTOR] == {"a": 0.75, "b": 0.5}


def test_nothing_found_is_an_empty_ranking() -> None:
    assert ranked(candidates([])).ranking == []


rows = st.lists(
    st.tuples(st.integers(0, 80).map(lambda n: n / 4), st.integers(-8, 8).map(lambda n: n / 8)),
    min_size=1,
    max_size=12,
)


@given(rows, st.integers(1, 12))
def test_a_ranking_is_sorted_and_without_repeats(found, limit) -> None:
    some = candidates(*zip(*found, strict=True))
    result = ranked(some, limits={VECTOR: limit, TEXT: limit}).ranking
    assert result == sorted(result, key=lambda pair: (-pair[1], pair[0]))
    assert len({key for key, _ in result}) == len(result)
    best = some.chunk_ids[int(np.argmax(some.cosine))]
    assert best in {key for key, _ in result}


@given(rows)
def test_with_all_weight_on_one_channel_it_alone_orders(found) -> None:
    some = candidates(*zip(*found, strict=True))
    assert some.cosine is not None
    for weight, scores in ((1.0, some.cosine), (0.0, some.bm25)):
        value = dict(zip(some.chunk_ids, scores.tolist(), strict=True))
        result = [value[key] for key in order(some, weight=weight, limits={VECTOR: 99, TEXT: 99})]
        assert result == sorted(result, reverse=True)
