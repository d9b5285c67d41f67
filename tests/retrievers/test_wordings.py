"""Several wordings of one question: one ranking, whatever their order."""

from __future__ import annotations

import pytest
from fakes import document, write
from hypothesis import given
from hypothesis import strategies as st
from stage_builders import ANN, hit, ids

from core.trace import StageStep
from retrievers.expansion import fuse_wordings, reciprocal_ranks
from retrievers.fusion import TEXT, VECTOR
from retrievers.hybrid import hybrid_search
from retrievers.types import Query, RetrievalResult

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


@pytest.mark.parametrize(
    ("weight", "question", "added"),
    [(1.0, "many boats", True), (1.0, "many_boats", False), (0.0, "many boats", False)],
)
def test_headings_of_the_best_hits_add_their_words(
    store, collection, embedder, index, weight: float, question: str, added: bool
) -> None:
    """The second page has the documentation's word alone, which no question says."""
    rows = [
        document(collection, "first", "many boats sail together", title="Flotilla"),
        document(collection, "second", "a flotilla needs orders"),
        *(document(collection, f"other{n}", f"quiet village number {n}") for n in range(8)),
    ]
    write(store, collection, rows, embedder)
    made = index(**{"selection.factor_amounts": [f"headings={weight}"]})
    found = hybrid_search(made, Query(question, ANN), [VECTOR, TEXT], {VECTOR: 1, TEXT: 5}, 10)
    notes = {step.name: step.note for step in found.stages}
    assert ("second" in [item.document_id for item in found.evidence]) is added
    assert ("flotilla" in notes.get("headings", "")) is added
