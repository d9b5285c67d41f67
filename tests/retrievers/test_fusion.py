"""Fusion: the formulas by hand, and what must hold for any scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from retrievers.fusion import (
    TAIL,
    best_mask,
    min_max,
    proportion,
    reciprocal_ranks,
    standardise,
    weighted_sum,
)

numbers = st.integers(-1000, 1000).map(lambda n: n / 8)
scores = st.integers(0, 8).flatmap(lambda n: arrays(np.float64, n, elements=numbers))
pairs = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        arrays(np.float64, n, elements=numbers), arrays(np.float64, n, elements=numbers)
    )
)


@pytest.mark.parametrize(
    ("given_scores", "expected"),
    [
        ([], []),
        ([5.0], [1.0]),
        ([3.0, 3.0], [1.0, 1.0]),
        ([0.0, 0.0], [0.0, 0.0]),
        ([10.0, 5.0, 0.0], [1.0, 0.5, 0.0]),
        ([-1.0, -5.0], [1.0, 0.0]),
    ],
)
def test_min_max_by_hand(given_scores, expected) -> None:
    assert min_max(np.array(given_scores)).tolist() == expected


def test_standardise_by_hand() -> None:
    found = standardise(np.array([0.8, 0.5, 0.2]), 0.2, 0.05, rows=10_000)
    assert found == pytest.approx([2.0, 1.0, 0.0])  # 12, 6 and 0 deviations over TAIL
    assert TAIL == 6.0


def test_the_best_of_few_rows_can_reach_one() -> None:
    """Of n numbers one can lie sqrt(n - 1) deviations from their mean, and no further."""
    rows = np.array([1.0, 0.0, 0.0, 0.0])
    found = standardise(rows, float(rows.mean()), float(rows.std()), rows=len(rows))
    assert found[0] == pytest.approx(1.0)


def test_scores_that_do_not_differ_fall_back_to_min_max() -> None:
    assert standardise(np.array([0.5, 0.5]), 0.5, 0.0, rows=2).tolist() == [1.0, 1.0]


def test_proportion_by_hand() -> None:
    assert proportion(np.array([8.0, 2.0, 0.0])).tolist() == [1.0, 0.25, 0.0]
    assert proportion(np.array([0.0, 0.0])).tolist() == [0.0, 0.0]
    assert proportion(np.array([])).tolist() == []


def test_weighted_sum_by_hand() -> None:
    both = weighted_sum(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 0.6)
    assert both == pytest.approx([0.6, 0.4])


def test_reciprocal_ranks_by_hand() -> None:
    found = np.array([True, True, True, False])
    ranks = reciprocal_ranks(np.array([0.9, 0.1, 0.9, 5.0]), found, constant=60)
    assert ranks == pytest.approx([1 / 61, 1 / 63, 1 / 61, 0.0])


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


@given(scores)
def test_min_max_is_between_0_and_1(one) -> None:
    scaled = min_max(one)
    assert ((scaled >= 0) & (scaled <= 1)).all()


@given(pairs, st.integers(0, 10).map(lambda n: n / 10))
def test_the_order_of_the_channels_does_not_matter(both, weight) -> None:
    one, two = both
    forth = weighted_sum(min_max(one), min_max(two), weight)
    back = weighted_sum(min_max(two), min_max(one), 1 - weight)
    assert forth == pytest.approx(back)


@given(pairs, st.data(), st.integers(1, 2000).map(lambda n: n / 8))
def test_a_better_score_in_a_channel_never_lowers_the_place(both, data, gain) -> None:
    one, two = both
    row = data.draw(st.integers(0, len(one) - 1))
    better = one.copy()
    better[row] += gain
    everything = np.ones(len(one), dtype=bool)

    def ahead(fuse, channel) -> set[int]:
        fused = weighted_sum(fuse(channel), fuse(two), 0.6)
        return set(np.flatnonzero(fused > fused[row] + 1e-9).tolist())

    def ranks(channel):
        return reciprocal_ranks(channel, everything, constant=60)

    def standard(channel):
        return standardise(channel, 0.0, 50.0, rows=100)

    for fuse in (min_max, ranks, standard):
        assert ahead(fuse, better) <= ahead(fuse, one)


@given(scores, st.integers(1, 100).map(lambda n: n / 4), st.integers(-100, 100))
def test_the_scale_of_a_channel_does_not_matter(one, factor, shift) -> None:
    scaled = one * factor + shift
    if len(one) and one.max() > one.min():
        assert min_max(scaled) == pytest.approx(min_max(one))
        mean, deviation = float(one.mean()), float(one.std())
        own = standardise(one, mean, deviation, rows=50)
        other = standardise(scaled, mean * factor + shift, deviation * factor, rows=50)
        assert other == pytest.approx(own)
