"""The stages that only leave evidence out: near duplicates, the token budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage_builders import hit, ids, searched, with_settings

from core.settings import Settings
from retrievers.stages import context_budget, near_duplicates, token_budget

LONG = "The harbour of the town opens at dawn and closes when the last boat is in. " * 3


@pytest.mark.parametrize(
    ("one", "other", "kept"),
    [
        ("The harbour is open.", "the  harbour is OPEN", 1),
        (LONG, LONG + "Always.", 1),
        (LONG, "Another text altogether, about the forest behind the hills of the town.", 2),
        ("港口在城市的北边,每天早上开放。", "港口在城市的北边，每天早上开放", 1),
        ("...", "???", 2),
    ],
)
def test_what_says_the_same_is_kept_once(index, one, other, kept) -> None:
    after, _ = near_duplicates(searched(index()), [hit("a", one), hit("b", other)])
    assert ids(after) == ["a", "b"][:kept]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{LONG} It costs 30 euro.", f"{LONG} It costs 60 euro."),
        (f"{LONG} It is open.", f"{LONG} It is not open."),
        (f"{LONG} Это можно.", f"{LONG} Это не можно."),
        ("港口每天早上开放，游客可以进入参观，门票免费。" * 3, "港口每天早上不开放，" * 3),
    ],
)
def test_another_number_or_a_denial_is_another_fact(index, one, other) -> None:
    lenient = with_settings(index(), near_duplicate=0.5)
    assert len(near_duplicates(searched(lenient), [hit("a", one), hit("b", other)])[0]) == 2


def test_the_note_names_what_was_dropped(index) -> None:
    inside = hit("c", "same", document_key="a")
    after, note = near_duplicates(
        searched(index()), [hit("a", "same"), hit("b", "same"), inside, hit("d", "other")]
    )
    assert ids(after) == ["a", "d"]
    assert note == "dropped b of b.md (as a), c (as a)"


@given(st.lists(st.integers(0, 400), max_size=8), st.integers(100, 400))
def test_the_token_budget_keeps_the_longest_beginning_that_fits(lengths, budget) -> None:
    class Index:
        settings = Settings(context_tokens=budget)

    evidence = [hit(f"h{n}", "x" * 4 * length) for n, length in enumerate(lengths)]
    after, note = token_budget(searched(Index()), evidence)
    assert after == evidence[: len(after)]
    used = [max(1, length) for length in lengths]
    assert len(after) >= min(1, len(evidence))
    assert len(after) <= 1 or sum(used[: len(after)]) <= budget
    if len(after) < len(evidence):
        assert sum(used[: len(after) + 1]) > budget
        assert note == f"{len(evidence) - len(after)} beyond {budget} tokens dropped"


@pytest.mark.parametrize(
    ("window", "share", "budget"), [(0, 0.7, 1000), (1000, 0.7, 700), (9000, 0.7, 1000)]
)
def test_evidence_fills_a_share_of_the_window_at_most(window, share, budget) -> None:
    settings = Settings(context_tokens=1000, context_window=window, context_share=share)
    assert context_budget(settings) == budget
