"""A budget names the limit that is met; a ledger charges what one node spends to it."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from core.budget import Budget, Ledger, Usage, current_ledger, opened_ledger
from core.trace import ModelCall
from core.types import StopReason


def ledger(**values: object) -> Ledger:
    return Ledger(**{"deadline": time.monotonic() + 10, "tokens": 100, **values})  # type: ignore[arg-type]


def call(outcome: str = "ok", read: int = 10, written: int = 5) -> ModelCall:
    return ModelCall(
        verb="grade",
        prompt_hash="0" * 16,
        outcome=outcome,  # type: ignore[arg-type]
        prompt_tokens=read,
        completion_tokens=written,
    )


def test_calls_are_charged_to_the_open_ledger_however_deep() -> None:
    def deep() -> None:
        current_ledger().record(call())

    with opened_ledger(ledger()) as outer:
        deep()
        with opened_ledger(ledger()) as inner:
            deep()
            deep()
        deep()
    assert (len(outer.calls), len(inner.calls)) == (2, 2)
    assert (outer.spent, outer.tokens_left()) == (30, 70)


def test_ledgers_of_threads_do_not_meet() -> None:
    seen: list[Ledger] = []
    with opened_ledger(ledger()) as own:
        thread = threading.Thread(target=lambda: seen.append(current_ledger()))
        thread.start()
        thread.join()
    assert seen[0] is not own


def test_without_a_node_there_are_wide_limits() -> None:
    assert current_ledger().seconds_left() > 60
    assert current_ledger().tokens_left() > 100_000


@pytest.mark.parametrize(
    ("outcome", "lost"),
    [
        *((outcome, False) for outcome in ("ok", "invalid", "length", "overflow")),
        *((outcome, True) for outcome in ("timeout", "unavailable")),
    ],
)
def test_a_model_that_does_not_answer_is_lost_for_the_run(outcome: str, lost: bool) -> None:
    held = ledger()
    held.record(call(outcome))
    held.record(call())
    assert held.lost is lost


def test_a_reply_that_is_no_decision_is_marked_and_still_paid_for() -> None:
    held = ledger()
    held.record(call())
    held.judge("invalid", "no grade for e2")
    assert [(item.outcome, item.error) for item in held.calls] == [("invalid", "no grade for e2")]
    assert held.spent == 15


def test_the_same_reason_is_named_once() -> None:
    held = ledger()
    held.degrade("grade: three invalid replies")
    held.degrade("grade: three invalid replies")
    held.degrade("answer: too slow")
    assert len(held.degraded) == len(held.warnings) == 2
    assert all("the rules decided" in warning for warning in held.warnings)


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
        ({"cost": 1.1}, StopReason.max_cost, StopReason.max_cost),
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
