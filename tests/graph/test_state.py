"""How updates of the state merge."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.budget import Usage
from core.types import Evidence
from graph.state import InputState, OutputState, State, merge_evidence


def found(chunk: str, score: float, **grades: int) -> Evidence:
    return Evidence(
        evidence_id=chunk,
        chunk_id=chunk,
        document_id="d",
        document_key="k",
        source="s",
        title="",
        text="",
        score=score,
        grades=grades,
    )


@pytest.mark.parametrize(
    ("left", "right", "merged"),
    [
        ([], [], []),
        ([found("a", 1)], [], [found("a", 1)]),
        ([found("a", 1)], [found("b", 2)], [found("a", 1), found("b", 2)]),
        ([found("a", 1)], [found("a", 2)], [found("a", 2)]),
        ([found("a", 2)], [found("a", 1)], [found("a", 2)]),
        ([found("a", 2, q1=3)], [found("a", 1, q2=1)], [found("a", 2, q1=3, q2=1)]),
        ([found("a", 1, q1=3)], [found("a", 2, q1=1)], [found("a", 2, q1=3)]),
        ([found("a", 1)], [found("a", 1, q1=0)], [found("a", 1, q1=0)]),
        ([], [found("a", 1), found("a", 3)], [found("a", 3)]),
    ],
)
def test_evidence_merges_by_chunk(left, right, merged) -> None:
    assert merge_evidence(left, right) == merged


items = st.lists(
    st.builds(found, st.sampled_from("abc"), st.integers(0, 3), q1=st.integers(0, 3)), max_size=5
)


@given(items, items)
def test_merging_loses_nothing_and_happens_once(
    left: list[Evidence], right: list[Evidence]
) -> None:
    merged = merge_evidence(merge_evidence([], left), right)
    best = {item.chunk_id: 0.0 for item in left + right}
    for item in left + right:
        best[item.chunk_id] = max(best[item.chunk_id], item.score)
    assert {item.chunk_id: item.score for item in merged} == best
    assert len(merged) == len(best)
    assert merge_evidence(merged, merged) == merged
    for item in merged:
        grades = [other.grades["q1"] for other in left + right if other.chunk_id == item.chunk_id]
        assert item.grades["q1"] == max(grades)


def test_usage_adds_up_from_nothing() -> None:
    assert Usage(steps=1, ms=5).plus(Usage(steps=2, ms=3)) == Usage(steps=3, ms=5)


def test_what_goes_in_and_out_is_part_of_the_state() -> None:
    assert State.__annotations__.keys() > set(InputState.__annotations__)
    assert State.__annotations__.keys() > set(OutputState.__annotations__)
