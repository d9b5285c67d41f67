"""One order of all that a run found."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.types import Evidence
from graph.record import Ranking, SearchKind, ranked_evidence

NAMES = "abcdefgh"


def piece(name: str, grade: int = 0, score: float = 0.0) -> Evidence:
    return Evidence(
        evidence_id=f"e-{name}",
        chunk_id=name,
        document_id=name,
        document_key=name,
        source=name,
        title=name,
        text=name,
        score=score,
        grades={"q1": grade},
    )


def rankings(*searches: str, later: SearchKind = "rewritten") -> list[Ranking]:
    """Return what the first search and later ones found."""
    return [Ranking(later if place else "asked", hits) for place, hits in enumerate(searches)]


def order(grades: dict[str, int], *searches: str, later: SearchKind = "rewritten") -> str:
    evidence = [piece(name, grade) for name, grade in grades.items()]
    ranked = ranked_evidence(evidence, rankings(*searches, later=later))
    return "".join(item.chunk_id for item in ranked)


def ungraded(names: str) -> dict[str, int]:
    return dict.fromkeys(names, 0)


def test_one_search_keeps_its_order_where_grades_say_nothing() -> None:
    assert order(ungraded("abcd"), "dbca") == "dbca"
    assert order(dict.fromkeys("abcd", 2), "dbca") == "dbca"


def test_a_grade_lifts_a_passage_over_its_neighbour_but_not_over_everything() -> None:
    assert order({**ungraded("abcdef"), "f": 3}, "abcdef")[0] == "a"
    assert order({**ungraded("abcdef"), "c": 1}, "abcdef") == "acbdef"


def test_of_equal_places_the_better_grade_comes_first() -> None:
    assert order({"a": 0, "b": 1, "x": 0}, "x", "a", "b") == "xba"


def test_what_a_later_search_adds_stands_behind_the_best_of_the_first_unless_it_answers() -> None:
    assert order(ungraded("abcdex"), "abcde", "x") == "abcxde"
    assert order({**ungraded("abcde"), "x": 3}, "abcde", "x") == "xabcde"
    assert order({**ungraded("bcde"), "a": 3, "x": 3}, "abcde", "x") == "axbcde"


def test_a_hop_stands_behind_the_best_of_a_search_unless_both_found_it() -> None:
    assert order({**ungraded("abcdefgh"), "x": 2}, "abcdefgh", "x", later="hop") == "abcdefgxh"
    assert order(ungraded("abcdef"), "abcdef", "d", later="hop") == "abdcef"


def test_being_found_again_counts() -> None:
    assert order(ungraded("abc"), "abc", "c") == "cab"


def test_being_found_by_many_searches_adds_little_to_being_found_by_six() -> None:
    assert order(ungraded("ab"), *["a"] * 6, *["b"] * 50)[0] == "a"


def test_evidence_of_no_search_comes_last_by_grade() -> None:
    assert order({"a": 0, "y": 1, "z": 3}, "a") == "azy"
    assert order({"b": 0, "a": 0}) == "ab"


def test_unknown_and_repeated_hits_change_nothing() -> None:
    assert order(ungraded("ab"), "?a?aab") == order(ungraded("ab"), "ab")


@pytest.mark.parametrize("arranged", list(permutations("abc")))
def test_neither_the_order_nor_the_scores_of_the_evidence_matter(arranged: tuple[str, ...]) -> None:
    evidence = [piece(name, score=place) for place, name in enumerate(arranged)]
    ranked = ranked_evidence(evidence, rankings("cb", "ba"))
    assert [item.chunk_id for item in ranked] == ["b", "c", "a"]


@given(
    st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3)),
    st.lists(st.lists(st.sampled_from(NAMES))),
)
def test_every_piece_comes_once(grades: dict[str, int], searches: list[list[str]]) -> None:
    evidence = [piece(name, grade) for name, grade in grades.items()]
    ranked = ranked_evidence(evidence, rankings(*map("".join, searches)))
    assert sorted(ranked, key=lambda i: i.chunk_id) == sorted(evidence, key=lambda i: i.chunk_id)
    found = {name for hits in searches for name in hits}
    held = [item.chunk_id in found for item in ranked]
    assert held == sorted(held, reverse=True)


@given(st.permutations(NAMES), st.integers(0, len(NAMES) - 1), st.integers(1, 3))
def test_a_better_grade_never_lowers_a_passage(hits: list[str], place: int, grade: int) -> None:
    plain = order(ungraded(NAMES), "".join(hits))
    graded = order({**ungraded(NAMES), hits[place]: grade}, "".join(hits))
    assert graded.index(hits[place]) <= plain.index(hits[place])
