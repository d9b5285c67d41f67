"""Follow-up questions through the history."""

from __future__ import annotations

import pytest

from app.session import Session
from core.auth import AuthContext
from reasoning.types import Turn

AUTH = AuthContext(tenant="default")


@pytest.mark.parametrize(
    ("earlier", "question", "expected", "source"),
    [
        (
            ["What is the maximum timeout of the XPay refund API?"],
            "And who maintains it?",
            "Payments Gateway",
            "services.jsonl#svc-refund-api",
        ),
        (
            ["XPay 退款接口的 timeout 最大是多少？"],
            "那谁维护它?",
            "支付网关团队",
            "services.jsonl#svc-refund-api",
        ),
        (
            ["What is the XPay ledger?", "Who maintains the XPay payout API?"],
            "on which services does it depend?",
            "settlement",
            "services.jsonl#svc-payout-api",
        ),
        (
            ["What is the maximum timeout of the XPay refund API?"],
            "And of the order query API?",
            "60 seconds",
            "docs/orders.en.md",
        ),
    ],
)
def test_a_follow_up_is_answered_about_the_earlier_topic(
    earlier: list[str], question: str, expected: str, source: str, examples: Session
) -> None:
    history = [Turn(text, "An answer.") for text in earlier]
    run = examples.ask(question, AUTH, "xpay", history=history)
    assert expected in run.result["answer"]
    cited = {c["source"] for claim in run.result["claims"] for c in claim["citations"]}
    assert cited - {"records"} == {source}  # of records the count is cited too


def test_a_complete_question_ignores_the_history(examples: Session) -> None:
    history = [Turn("What is the default timeout of the XPay payout API?", "120 seconds")]
    question = "What is the default timeout of the order query API?"
    alone, after = (examples.ask(question, AUTH, "xpay", history=turns) for turns in ([], history))
    assert alone.result["claims"] == after.result["claims"]


def test_the_answer_of_a_turn_is_no_evidence(examples: Session) -> None:
    history = [
        Turn("Who maintains the XPay moon base?", "Dr. Nobody maintains the XPay moon base.")
    ]
    run = examples.ask("Who maintains the XPay moon base?", AUTH, "xpay", history=history)
    assert "Nobody" not in run.result["answer"]


def test_without_history_a_follow_up_is_a_question_of_its_own(examples: Session) -> None:
    run = examples.ask("And who maintains it?", AUTH, "xpay")
    step = run.trail[0]
    assert step.arguments["history"] == 0
    assert step.arguments["parts"] == ["And who maintains it"]


def test_a_record_that_a_chain_finds_is_asked_for_its_field(examples: Session) -> None:
    question = "Who is on call for the service that signs events?"
    assert "integrations-rota" in examples.ask(question, AUTH, "xpay").result["answer"]
