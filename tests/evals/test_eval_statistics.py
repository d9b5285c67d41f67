"""Intervals and paired tests on cases whose answer is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.settings import Settings
from evals.summary import differences, intervals, percentile

SETTINGS = Settings(eval_resamples=4000)


def test_the_interval_of_a_share_is_the_textbook_one():
    column = [1.0] * 60 + [0.0] * 40
    (found,) = intervals([column], SETTINGS)
    assert found == pytest.approx((0.504, 0.696), abs=0.02)  # 0.6 ± 1.96 · √(0.6 · 0.4 / 100)


def test_a_constant_has_no_width_and_a_single_query_no_interval():
    (found,) = intervals([[0.5] * 20], SETTINGS)
    assert found == pytest.approx((0.5, 0.5))
    assert intervals([[0.5], [0.1]], SETTINGS) == [None, None]


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_an_interval_lies_within_the_values(column):
    (found,) = intervals([column], Settings(eval_resamples=200))
    assert found is not None
    low, high = found
    assert min(column) - 1e-9 <= low <= high <= max(column) + 1e-9


def test_the_same_seed_gives_the_same_figures_and_columns_do_not_matter():
    a, b = [0.1, 0.9, 0.4, 0.6, 0.2], [1.0, 0.0, 0.0, 1.0, 1.0]
    assert intervals([a, b], SETTINGS)[1] == intervals([b], SETTINGS)[0]
    other = Settings(eval_resamples=4000, eval_seed=5)
    many = [n * 37 % 101 / 101 for n in range(60)]
    assert intervals([many], SETTINGS) != intervals([many], other)


def test_a_clear_difference():
    first, second = [[0.9] * 12 + [0.2]], [[0.4] * 12 + [0.7]]
    (found,) = differences(first, second, SETTINGS)
    assert found.mean == pytest.approx(5.5 / 13)
    assert (found.wins, found.ties, found.losses) == (12, 0, 1)
    assert found.interval is not None
    assert found.interval[0] > 0
    assert found.p == pytest.approx(28 / 2**13, abs=0.003)  # 13 equal sizes: ≤ 1 or ≥ 12 of a sign


def test_no_difference_is_no_evidence():
    same = [[0.1, 0.5, 0.9, 0.3]]
    (found,) = differences(same, same, SETTINGS)
    assert (found.mean, found.interval, found.p) == (0.0, (0.0, 0.0), 1.0)
    assert (found.wins, found.ties, found.losses) == (0, 4, 0)


def test_two_wins_prove_little():
    (found,) = differences([[1.0, 1.0, 0.5]], [[0.0, 0.0, 0.5]], SETTINGS)
    assert found.p == pytest.approx(0.5, abs=0.03)


def test_rounding_is_a_tie():
    (found,) = differences([[0.1 + 0.2]], [[0.3]], SETTINGS)
    assert (found.wins, found.ties, found.mean) == (0, 1, 0.0)


def test_the_sides_can_be_exchanged():
    a, b = [[0.2, 0.4, 0.9, 0.6]], [[0.1, 0.8, 0.3, 0.6]]
    (one,), (other,) = differences(a, b, SETTINGS), differences(b, a, SETTINGS)
    assert one.mean == pytest.approx(-other.mean)
    assert one.p == pytest.approx(other.p)
    assert (one.wins, one.losses) == (other.losses, other.wins)


def test_percentiles():
    assert percentile([1, 2, 3, 4, 5], 0.5) == 3
    assert percentile([0, 10], 0.95) == pytest.approx(9.5)
