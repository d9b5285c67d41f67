"""Any text at all ends in an answer or a refusal; only a caller's mistake is an error."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiers import examples

from app.session import Session
from core.auth import AuthContext
from core.errors import CallerError
from core.types import StopReason
from reasoning.types import Turn

AUTH = AuthContext(tenant="default")
WORDS = st.sampled_from(
    (
        "what who when refund XPay timeout ? and , . кто когда книга и хто де 谁 退款 多少 ？ 最近"
        " XP-4221 docs/* \" ' ( ) * OR NEAR NOT -- ; % _ \\ {x} ${y} <b> 1861 physics Alice"
        " \u200b \u202e 😀"
    ).split(" ")
)
QUESTIONS = st.one_of(
    st.text(min_size=1, max_size=40),
    st.lists(WORDS, min_size=1, max_size=12).map(" ".join),
)


@settings(
    max_examples=examples(100, quick=5),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    question=QUESTIONS,
    earlier=st.lists(st.text(min_size=1, max_size=20), max_size=1),
    collection=st.sampled_from(["xpay", "library", "closed"]),
    classic=st.booleans(),
)
def test_any_question_ends_in_an_answer_or_a_refusal(
    question: str, earlier: list[str], collection: str, classic: bool, examples: Session
) -> None:
    history = [Turn(text, text) for text in earlier]
    try:
        run = examples.ask(
            question,
            AUTH,
            collection,
            history=history,
            pipeline="classic" if classic else "agentic",
        )
    except CallerError as error:
        hidden = collection == "closed" and "the collection must exist" in str(error)
        assert hidden or not any(c.isalnum() for c in question.replace("\x00", ""))
        return
    result = run.result
    assert result["answer"]
    assert result["refused"] == (not result["claims"])
    assert StopReason(result["stop_reason"])
    budget = examples.settings.run_budget()
    assert result["usage"]["steps"] <= budget.steps
    assert result["usage"]["tool_calls"] <= budget.tool_calls
    assert collection != "closed"
    for claim in result["claims"]:
        assert claim["citations"]


@pytest.mark.parametrize("question", ["", "   ", "?!", "\x00", "…", "word " * 1000], ids=range(6))
def test_what_is_no_question_is_the_callers_error(question: str, examples: Session) -> None:
    with pytest.raises(CallerError):
        examples.ask(question, AUTH, "xpay")


def test_many_parts_stay_within_the_limit(examples: Session) -> None:
    question = " ".join(f"Who maintains service {n}?" for n in range(30))
    run = examples.ask(question, AUTH, "xpay")
    assert len(run.trail[0].arguments["parts"]) == examples.settings.answering.max_sub_questions
    assert run.result["usage"]["tool_calls"] <= examples.settings.budget.tool_calls
