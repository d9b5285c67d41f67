"""Metrics against values computed by hand."""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.summary import METRICS, query_metrics


def metrics(grades: dict[str, int], ranking: list[str]) -> dict[str, float]:
    return query_metrics([grades], [ranking])[0]


def test_a_graded_query_by_hand():
    grades = {"a": 2, "b": 1, "c": 1, "d": 0}
    found = metrics(grades, ["d", "a", "x", "y", "b"])
    dcg = 2 / log2(3) + 1 / log2(6)
    ideal = 2 / log2(2) + 1 / log2(3) + 1 / log2(4)
    assert found == pytest.approx(
        {
            "precision@3": 1 / 3,
            "precision@5": 2 / 5,
            "precision@10": 2 / 10,
            "recall@5": 2 / 3,
            "recall@10": 2 / 3,
            "recall@100": 2 / 3,
            "mrr": 1 / 2,
            "ndcg@5": dcg / ideal,
            "ndcg@10": dcg / ideal,
            "full_support@10": 0.0,
        }
    )


def test_depths_are_counted_in_documents():
    ranking = [f"x{n}" for n in range(7)] + ["a"] + [f"y{n}" for n in range(90)] + ["b", "z", "c"]
    found = metrics({"a": 1, "b": 1, "c": 1}, ranking)
    assert ranking.index("b") == 98
    assert found["recall@5"] == 0
    assert found["recall@10"] == pytest.approx(1 / 3)
    assert found["recall@100"] == pytest.approx(2 / 3)
    assert found["mrr"] == pytest.approx(1 / 8)


@pytest.mark.parametrize(
    ("place", "support"), [(0, 1.0), (8, 1.0), (9, 1.0), (10, 0.0), (None, 0.0)]
)
def test_full_support_needs_every_relevant_document_among_the_first_ten(place, support):
    ranking = ["a", *(f"x{n}" for n in range(20))]
    ranking = ranking if place is None else [*ranking[:place], "b", *ranking[place:]]
    grades = {"a": 1, "b": 2, "c": 0}
    assert metrics(grades, ranking)["full_support@10"] == support


def test_a_query_with_more_than_ten_relevant_documents_never_has_full_support():
    ranking = [f"d{n}" for n in range(11)]
    assert metrics(dict.fromkeys(ranking, 1), ranking)["full_support@10"] == 0.0
    assert metrics(dict.fromkeys(ranking[:10], 1), ranking)["full_support@10"] == 1.0


def test_an_empty_ranking_is_zero_and_a_right_one_is_one():
    rows = query_metrics([{"a": 3}, {"a": 3}], [[], ["a"]])
    assert rows[0] == dict.fromkeys(METRICS, 0.0)
    assert rows[1]["ndcg@5"] == rows[1]["mrr"] == rows[1]["recall@5"] == 1.0


def test_grades_below_one_are_not_relevant():
    assert metrics({"a": 1, "b": -2, "c": 0}, ["b", "c", "a"])["mrr"] == pytest.approx(1 / 3)
    assert metrics({"a": 1, "b": -2}, ["a", "b"])["ndcg@5"] == 1.0


@given(st.permutations([f"d{n:02d}" for n in range(12)]))
def test_the_order_found_is_the_order_measured(ranking):
    """trec_eval sorts equal scores by id, which must not replace the order of the pipeline."""
    found = metrics({"d03": 1}, ranking)
    assert found["mrr"] == pytest.approx(1 / (ranking.index("d03") + 1))
    assert found["precision@3"] == pytest.approx((ranking.index("d03") < 3) / 3)


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 4), min_size=1),
    st.permutations("abcdefgh"),
)
def test_metrics_stay_within_zero_and_one(grades, ranking):
    found = metrics(grades, ranking)
    assert all(0 <= value <= 1 + 1e-9 for value in found.values())
    assert found["recall@5"] <= found["recall@10"] <= found["recall@100"]
