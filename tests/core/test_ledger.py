"""What the chat model may spend in one node, and what is charged to it."""

from __future__ import annotations

import threading
import time

import pytest

from core.budget import Ledger, current_ledger, opened_ledger
from core.trace import ModelCall


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
        ("ok", False),
        ("invalid", False),
        ("length", False),
        ("overflow", False),
        ("timeout", True),
        ("unavailable", True),
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
