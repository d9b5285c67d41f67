"""Asking back: when, what, and how the run goes on with the reply."""

from __future__ import annotations

from core.auth import AuthContext
from graph.session import Session

AUTH = AuthContext(tenant="default", user="tester")


def begin(session: Session, collection: str = "xpay") -> str:
    return session.store.conversations.create("default", "tester", collection).id


def test_a_question_that_names_nothing_is_asked_back_and_goes_on(examples: Session) -> None:
    name = begin(examples)
    asked = examples.ask("Who maintains it?", AUTH, "", conversation=name, clarify=True)
    assert asked.result["stop_reason"] == "clarification_needed"
    assert asked.result["answer"] == "" and not asked.result["refused"]
    assert asked.result["clarification"] == {
        "question": "What do you mean by “it”?",
        "options": [],
    }
    assert [step.node for step in asked.trail] == ["understand", "clarify"]
    run = examples.ask("the XPay refund API", AUTH, "", conversation=name, clarify=True)
    assert "Payments Gateway" in run.result["answer"]
    assert run.result["clarification"] is None
    assert (run.run_id, run.question) == (asked.run_id, "Who maintains it?")
    nodes = [step.node for step in run.trail]
    assert nodes[:4] == ["understand", "clarify", "understand", "retrieve"]
    after = examples.ask("And what is its maximum timeout?", AUTH, "", conversation=name)
    assert "300" in after.result["answer"]
