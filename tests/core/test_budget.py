"""A budget names the limit that is met, and keeps a share for the answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from core.budget import Budget, Usage
from core.types import StopReason

LIMITS = {"steps": 20, "tool_calls": 4, "tokens": 100, "seconds": 10, "cost": 1.0}
BUDGET = Budget(**LIMITS, answer_share=0.2)
counts = st.integers(0, 1000)
usages = st.builds(
    Usage, steps=counts, tool_calls=counts, tokens=counts, cost=counts, ms=counts.map(float)
)


@pytest.mark.parametrize(
    ("used", "searching", "answering"),
    [
        ({}, None, None),
        ({"ms": 7999}, None, None),
        ({"ms": 8000}, StopReason.timeout, None),
        ({"ms": 10_000}, StopReason.timeout, StopReason.timeout),
        ({"steps": 15}, None, None),
        ({"steps": 16}, StopReason.max_steps, None),
        ({"steps": 20}, StopReason.max_steps, StopReason.max_steps),
        ({"tool_calls": 3}, None, None),
        ({"tool_calls": 4}, StopReason.max_tool_calls, None),
        ({"tokens": 80}, None, None),
        ({"tokens": 81}, StopReason.max_tokens, None),
        ({"tokens": 101}, StopReason.max_tokens, StopReason.max_tokens),
        ({"cost": 1.0}, None, None),
        ({"cost": 1.1}, StopReason.max_tokens, StopReason.max_tokens),
        ({"ms": 9000, "steps": 99, "tokens": 999}, StopReason.timeout, StopReason.max_steps),
    ],
)
def test_the_limit_that_is_met_is_named(used, searching, answering) -> None:
    assert BUDGET.exceeded(Usage(**used)) == searching
    assert BUDGET.exceeded(Usage(**used), answering=True) == answering


def test_even_the_smallest_budget_takes_a_step() -> None:
    smallest = Budget(steps=1, tool_calls=1, tokens=0, seconds=1, cost=0, answer_share=0.9)
    assert smallest.exceeded(Usage()) is None
    assert smallest.exceeded(Usage(steps=1)) == StopReason.max_steps


@pytest.mark.parametrize(("made", "left"), [(0, 4), (3, 1), (4, 0), (9, 0)])
def test_calls_that_are_left(made: int, left: int) -> None:
    assert BUDGET.calls_left(Usage(tool_calls=made)) == left


@pytest.mark.parametrize(
    "wrong", [{"steps": 0}, {"tool_calls": -1}, {"seconds": 0}, {"answer_share": 1.0}]
)
def test_impossible_limits_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Budget(**{**LIMITS, "answer_share": 0.1, **wrong})


@given(usages, usages, usages)
def test_usage_adds_up_in_any_order(one: Usage, two: Usage, three: Usage) -> None:
    assert one.plus(two) == two.plus(one)
    assert one.plus(two).plus(three) == one.plus(two.plus(three))
    assert one.plus(Usage()) == one


@given(usages, usages)
def test_spending_more_never_frees_a_run(one: Usage, two: Usage) -> None:
    for answering in (True, False):
        if BUDGET.exceeded(one, answering=answering):
            assert BUDGET.exceeded(one.plus(two), answering=answering)
