"""Fusion: the formulas by hand, and what must hold for any rankings."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from retrievers.fusion import min_max, reciprocal_rank_fusion, weighted_fusion

KEYS = "abcdef"
scores = st.dictionaries(
    st.sampled_from(KEYS), st.integers(-1000, 1000).map(lambda n: n / 8), max_size=6
)
weights = st.integers(1, 10).map(lambda n: n / 10)


def ranked(found: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))


@pytest.mark.parametrize(
    ("ranking", "expected"),
    [
        ([], {}),
        ([("a", 5.0)], {"a": 1.0}),
        ([("a", 3.0), ("b", 3.0)], {"a": 1.0, "b": 1.0}),
        ([("a", 10.0), ("b", 5.0), ("c", 0.0)], {"a": 1.0, "b": 0.5, "c": 0.0}),
        ([("a", -1.0), ("b", -5.0)], {"a": 1.0, "b": 0.0}),
    ],
)
def test_min_max_by_hand(ranking, expected) -> None:
    assert min_max(ranking) == expected


def test_weighted_fusion_by_hand() -> None:
    channels = {
        "vector": [("a", 0.9), ("b", 0.7), ("c", 0.5)],
        "text": [("c", 8.0), ("d", 4.0), ("a", 0.0)],
    }
    fused = weighted_fusion(channels, {"vector": 0.6, "text": 0.4})
    assert [key for key, _ in fused] == ["a", "c", "b", "d"]
    assert dict(fused) == pytest.approx({"a": 0.6, "b": 0.3, "c": 0.4, "d": 0.2})


@pytest.mark.parametrize("silent", [{"text": []}, {"text": [("z", 1.0)]}])
def test_a_silent_or_weightless_channel_gives_its_weight_away(silent) -> None:
    given_weights = {"vector": 0.6, "text": 0.0 if silent["text"] else 0.4}
    fused = weighted_fusion({"vector": [("a", 2.0), ("b", 1.0)], **silent}, given_weights)
    assert fused == [("a", 1.0), ("b", 0.0)]


def test_no_channel_found_anything() -> None:
    assert weighted_fusion({"vector": [], "text": []}, {"vector": 0.6, "text": 0.4}) == []
    assert reciprocal_rank_fusion({"vector": []}) == []


def test_reciprocal_rank_fusion_by_hand() -> None:
    fused = reciprocal_rank_fusion({"one": [("a", 9.0), ("b", 1.0)], "two": [("b", 0.3)]})
    assert fused == [
        ("b", pytest.approx(1 / 62 + 1 / 61)),
        ("a", pytest.approx(1 / 61)),
    ]


@given(scores, scores, weights, weights)
def test_the_result_is_between_0_and_1_and_sorted(one, two, w1, w2) -> None:
    fused = weighted_fusion({"one": ranked(one), "two": ranked(two)}, {"one": w1, "two": w2})
    assert {key for key, _ in fused} == set(one) | set(two)
    assert all(-1e-9 <= score <= 1 + 1e-9 for _, score in fused)
    assert fused == ranked(dict(fused))


@given(scores, scores, weights, weights)
def test_the_order_of_the_channels_does_not_matter(one, two, w1, w2) -> None:
    given_weights = {"one": w1, "two": w2}
    forth = {"one": ranked(one), "two": ranked(two)}
    back = {"two": ranked(two), "one": ranked(one)}
    assert weighted_fusion(forth, given_weights) == weighted_fusion(back, given_weights)
    assert reciprocal_rank_fusion(forth) == reciprocal_rank_fusion(back)


@given(scores, scores, st.sampled_from(KEYS), st.integers(1, 2000).map(lambda n: n / 8))
def test_a_better_score_in_a_channel_never_lowers_the_place(one, two, key, gain) -> None:
    assume(key in one)
    better = {**one, key: one[key] + gain}
    given_weights = {"one": 0.6, "two": 0.4}

    def ahead(fuse, channel) -> set[str]:
        fused = dict(fuse({"one": ranked(channel), "two": ranked(two)}))
        return {other for other, score in fused.items() if score > fused[key] + 1e-9}

    def weighted(channels):
        return weighted_fusion(channels, given_weights)

    assert ahead(weighted, better) <= ahead(weighted, one)
    assert ahead(reciprocal_rank_fusion, better) <= ahead(reciprocal_rank_fusion, one)


@given(scores, st.integers(1, 100).map(lambda n: n / 4), st.integers(-100, 100))
def test_the_scale_of_a_channel_does_not_matter(one, factor, shift) -> None:
    scaled = {key: score * factor + shift for key, score in one.items()}
    assert min_max(ranked(scaled)) == pytest.approx(min_max(ranked(one)))
