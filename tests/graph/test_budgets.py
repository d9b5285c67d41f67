"""Every way a run may end, and that no run spends more than one node beyond its budget."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest

from app.session import Session
from core.auth import AuthContext
from core.budget import Budget, Usage
from core.types import StopReason

PLAIN = "What is the default timeout of the order query API?"
THREE = (
    "What is the maximum timeout of the XPay refund API, who maintains it and have there been "
    "complaints recently?"
)
NOTHING = "What is the salary of the engineers of the Payments Gateway team?"
Run = Callable[..., dict[str, Any]]


def ends(state: dict[str, Any]) -> StopReason:
    reason: StopReason = state["answer"].stop_reason
    return reason


def test_enough_evidence(run: Run) -> None:
    assert ends(run(PLAIN)) == StopReason.enough_evidence


def test_no_relevant_evidence(run: Run) -> None:
    state = run(NOTHING)
    assert ends(state) == StopReason.no_relevant_evidence
    assert state["answer"].refused


def test_required_fields_missing_names_what_is_missing(run: Run) -> None:
    state = run("What is the default timeout of the order query API? Who won the chess match?")
    answer = state["answer"]
    assert ends(state) == StopReason.required_fields_missing
    assert not answer.refused
    assert answer.missing == ["Who won the chess match"]
    assert "30 seconds" in answer.text
    assert "Not found: Who won the chess match" in answer.text


@pytest.mark.parametrize("steps", [1, 2, 4, 6, 8, 12, 20])
@pytest.mark.parametrize("question", [THREE, NOTHING])
def test_max_steps(steps: int, question: str, run: Run) -> None:
    state = run(question, budget={"steps": steps})
    if steps <= 8:
        assert ends(state) == StopReason.max_steps
    # Once searching stops, the answer takes two nodes, four when it is written twice and refused.
    searched = [s for s in state["trail"] if s.node not in ("generate", "verify", "refuse")]
    assert len(searched) <= max(5, steps + 4)
    assert state["answer"].text


@pytest.mark.parametrize("calls", [0, 1, 2, 3])
def test_max_tool_calls(calls: int, run: Run) -> None:
    state = run(NOTHING, budget={"tool_calls": calls})
    assert ends(state) == StopReason.max_tool_calls
    assert state["usage"].tool_calls <= calls
    assert len([step for step in state["trail"] if step.tool]) <= calls


def test_a_used_up_budget_still_answers_what_was_found(run: Run) -> None:
    state = run(THREE, budget={"tool_calls": 1})
    answer = state["answer"]
    assert ends(state) == StopReason.max_tool_calls
    assert not answer.refused
    assert "300 seconds" in answer.text
    assert len(answer.missing) == 2
    assert "Not searched: " in answer.text and "Not found" not in answer.text
    assert "1 of 1 tool calls were made; raise budget.tool_calls" in answer.text
    assert any("stopped early: max_tool_calls" in warning for warning in answer.warnings)


@pytest.mark.parametrize("tokens", [0, 100, 1000])
def test_max_tokens(tokens: int, run: Run) -> None:
    state = run(NOTHING, budget={"tokens": tokens})
    assert ends(state) == StopReason.max_tokens
    # The last search may go beyond, no other follows it.
    passes = [step.node for step in state["trail"]].count("grade_documents")
    assert passes == 1 or tokens > 100
    assert state["answer"].refused
    used = f"{state['usage'].tokens} of {tokens} tokens were used"
    assert used in state["answer"].text and "raise budget.tokens" in state["answer"].text


def ticking(seconds: float) -> Callable[[], float]:
    """Return a clock that starts now and goes on by `seconds` each time it is read."""
    count = itertools.count()
    began = time.monotonic()
    return lambda: began + next(count) * seconds


def test_timeout_while_searching(run: Run) -> None:
    state = run(NOTHING, budget={"seconds": 60}, clock=ticking(10))
    assert ends(state) == StopReason.timeout
    assert state["answer"].refused
    assert "of 60 seconds; raise budget.seconds" in state["answer"].text


def test_timeout_after_something_was_found_answers_it(run: Run) -> None:
    state = run(THREE, budget={"seconds": 60}, clock=ticking(6))
    assert ends(state) == StopReason.timeout
    assert not state["answer"].refused
    assert "300 seconds" in state["answer"].text


@pytest.mark.parametrize("node", ["understand", "retrieve", "generate"])
def test_an_interrupted_run_is_kept_as_cancelled(node: str, examples: Session) -> None:
    auth = AuthContext(tenant="default", user=f"stops-{node}")

    def interrupt(step: Any) -> None:  # noqa: ANN401
        if step.node == node:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        examples.ask(PLAIN, auth, "xpay", on_step=interrupt)
    kept = examples.store.runs.load(auth, "last")
    assert kept.result["stop_reason"] == "cancelled"
    assert kept.result["refused"]
    assert kept.trail[-1].node == node
    assert not examples.ask(PLAIN, auth, "xpay").result["refused"]


@pytest.mark.parametrize("question", [PLAIN, THREE, NOTHING])
def test_usage_counts_every_node_and_call(question: str, run: Run) -> None:
    state = run(question)
    calls = [step for step in state["trail"] if step.tool]
    usage: Usage = state["usage"]
    assert usage.tool_calls == len(calls)
    passes = ((step.node, step.question_id) for step in state["trail"])
    visits = [node for node, _ in itertools.groupby(passes)]
    assert usage.steps == len(visits)
    assert 0 < usage.ms < 60_000
    assert usage.tokens > 0


LIMITS = Budget(steps=20, tool_calls=4, tokens=100, seconds=10, cost=1, answer_share=0.2)


@pytest.mark.parametrize(
    ("usage", "searching", "answering"),
    [
        (Usage(), None, None),
        (Usage(steps=15, tool_calls=3, tokens=80, ms=7999, cost=1), None, None),
        (Usage(steps=16), StopReason.max_steps, None),
        (Usage(steps=20), StopReason.max_steps, StopReason.max_steps),
        (Usage(tool_calls=4), StopReason.max_tool_calls, None),
        (Usage(tokens=81), StopReason.max_tokens, None),
        (Usage(tokens=101), StopReason.max_tokens, StopReason.max_tokens),
        (Usage(ms=8000), StopReason.timeout, None),
        (Usage(ms=10_000), StopReason.timeout, StopReason.timeout),
        (Usage(cost=1.1), StopReason.max_cost, StopReason.max_cost),
    ],
)
def test_a_share_of_the_budget_is_kept_for_the_answer(
    usage: Usage, searching: StopReason | None, answering: StopReason | None
) -> None:
    assert LIMITS.exceeded(usage) == searching
    assert LIMITS.exceeded(usage, answering=True) == answering
