"""Several wordings of one question: one ranking, whatever their order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from stage_builders import hit, ids

from core.trace import StageStep
from retrievers.expansion import fuse_wordings, reciprocal_ranks
from retrievers.types import RetrievalResult

rankings = st.lists(
    st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8), min_size=1, max_size=4
)


def hits(names):
    return [hit(name) for name in names]


def test_reciprocal_ranks_by_hand() -> None:
    merged = reciprocal_ranks([hits("ab"), hits("bc")])
    assert ids(merged) == ["b", "a", "c"]
    assert [item.score for item in merged] == [
        (1 + 61 / 62) / 2,
        0.5,
        61 / 62 / 2,
    ]


@given(rankings, st.randoms())
def test_the_order_of_the_wordings_does_not_matter(found, chance) -> None:
    other = found[:]
    chance.shuffle(other)
    one, two = (reciprocal_ranks([hits(names) for names in given]) for given in (found, other))
    assert ids(one) == ids(two)
    assert set(ids(one)) == {name for names in found for name in names}
    assert all(0 < item.score <= 1 for item in one)


@given(rankings)
def test_one_ranking_stays_as_it_is(found) -> None:
    assert ids(reciprocal_ranks([hits(found[0])])) == found[0]


@given(rankings, st.sampled_from("abcdefgh"))
def test_being_found_first_once_more_never_lowers_a_place(found, name) -> None:
    before = ids(reciprocal_ranks([hits(names) for names in found]))
    after = ids(reciprocal_ranks([hits(names) for names in [*found, [name]]]))
    if name in before:
        assert after.index(name) <= before.index(name)


def test_the_trace_names_each_wording() -> None:
    stage = StageStep(name="rank", before=2, after=2, ms=1.0)
    one = RetrievalResult(evidence=hits("ab"), notes=["same"], stages=[stage])
    found = fuse_wordings({"harbour": one, "harbuor": one})
    assert (ids(found.evidence), found.notes) == (["a", "b"], ["same"])
    assert [step.note for step in found.stages] == ["harbour", "harbuor"]
    assert fuse_wordings({"harbour": one}) is one
