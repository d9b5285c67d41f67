"""Asking back: when, what, and how the run goes on with the reply."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import talks
from fakes import document
from talks import AUTH, begin, filled, reopening

from app.session import Session
from core.auth import AuthContext
from core.errors import CallerError
from core.trace import RunRecord, Step
from graph.threads import THREADS
from models.chat.types import ModelCancelled
from stores.sqlite.catalogue import Collection
from stores.sqlite.rows import DocumentRow

DOCUMENTS = {
    "refund.md": ("Refund API", "The refund API is maintained by the Payments Gateway team."),
    "payout.md": ("Payout API", "The maximum timeout of the payout API is 300 seconds."),
    "retention.md": (
        "Archive rules",
        "Letters are kept for ten years. Invoices are kept for seven years.",
    ),
    "возврат.md": ("Интерфейс возвратов", "Интерфейс возвратов поддерживает группа платежей."),
    "повернення.md": ("Інтерфейс повернень", "Інтерфейс повернень підтримує група платежів."),
    "退款.md": ("退款接口", "退款接口由支付网关团队维护。"),
}
NAMELESS = [
    # question, reply, what the answer says, the answer's next question
    ("Who maintains it?", "the refund API", "Payments Gateway"),
    ("Кто его поддерживает?", "интерфейс возвратов", "группа платежей"),
    ("Хто його підтримує?", "інтерфейс повернень", "група платежів"),
    ("谁维护它?", "退款接口", "支付网关团队"),
]
LOGO = "In which year was the refund logo drawn?"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Session]]:
    def rows(main: Collection) -> list[DocumentRow]:
        languages = {"возврат.md": "ru", "повернення.md": "uk", "退款.md": "zh"}
        open_to_all = [
            document(main, name, text, title=title, language=languages.get(name, "en"))
            for name, (title, text) in DOCUMENTS.items()
        ]
        vault = document(main, "x.md", "The refund vault.", title="Vault refund", acl=["boss"])
        return [*open_to_all, vault]

    data = filled(tmp_path_factory.mktemp("clarify") / "data", rows)
    # The made-up embedder knows no meaning, so that sentences are less likely to answer.
    with reopening(data, grade_partly=0.1) as again:
        yield again


@pytest.fixture
def session(opened: Callable[..., Session]) -> Session:
    return opened()


def say(session: Session, name: str, text: str, **more: Any) -> RunRecord:
    return talks.say(session, name, text, **{"clarify": True} | more)


def nodes(run: RunRecord) -> list[str]:
    return [step.node for step in run.trail]


def waits(session: Session, name: str) -> bool:
    return session.store.runs.load_conversation(AUTH, name).waiting is not None


@pytest.mark.parametrize(("question", "reply", "answer"), NAMELESS)
def test_a_question_that_names_nothing_goes_on_with_the_reply(
    session: Session, question: str, reply: str, answer: str
) -> None:
    name = begin(session)
    asked = say(session, name, question)
    assert asked.result["stop_reason"] == "clarification_needed"
    assert (asked.result["answer"], asked.result["refused"]) == ("", False)
    assert asked.result["clarification"]["question"] and waits(session, name)
    assert nodes(asked) == ["understand", "clarify"]
    run = say(session, name, reply)
    assert answer in run.result["answer"]
    assert run.result["clarification"] is None and not waits(session, name)
    assert nodes(run)[:4] == ["understand", "clarify", "understand", "retrieve"]
    assert (run.run_id, run.question) == (asked.run_id, question)
    kept = session.store.runs.load_conversation(AUTH, name)
    (turn,) = session.store.runs.turns(AUTH, kept)
    assert (turn["question"], turn["reply"]) == (question, reply)
    assert turn["clarification"] == asked.result["clarification"]
    assert turn["answer"] == run.result["answer"]
    follow = say(session, name, question)  # the conversation has named it by now
    assert answer in follow.result["answer"]


def test_related_documents_are_offered_instead_of_a_refusal(session: Session) -> None:
    name = begin(session)
    asked = say(session, name, LOGO)
    assert asked.result["stop_reason"] == "clarification_needed"
    assert asked.result["clarification"]["options"] == ["Refund API"]  # nobody else's vault
    assert nodes(asked)[-2:] == ["stop_condition", "clarify"]
    replied = say(session, name, "1")
    assert replied.result["refused"]  # there is no logo; it is asked once
    assert replied.result["stop_reason"] == "no_relevant_evidence"
    assert f"{LOGO} (Refund API)" in [step.reason for step in replied.trail]
    assert not waits(session, name)


@pytest.mark.parametrize("reply", ["none of these", "No.", "нет", "都不是"])
def test_none_of_these_is_the_honest_refusal(session: Session, reply: str) -> None:
    name = begin(session)
    say(session, name, LOGO)
    run = say(session, name, reply)
    alone = session.ask(LOGO, AUTH, "main")
    assert run.result["refused"] and run.result["stop_reason"] == "no_relevant_evidence"
    assert run.result["answer"].splitlines()[0] == alone.result["answer"].splitlines()[0]
    assert nodes(run)[-2:] == ["clarify", "refuse"]
    assert run.result["evidence"] == []
    assert not say(session, name, "Who maintains the refund API?").result["refused"]


def test_a_reply_that_asks_something_else_is_answered(session: Session) -> None:
    name = begin(session)
    say(session, name, "Who maintains it?")
    run = say(session, name, "What is the maximum timeout of the payout API?")
    assert "300 seconds" in run.result["answer"]


@pytest.mark.parametrize("question", [LOGO, "Who maintains it?"])
def test_nothing_is_asked_where_it_may_not_be(session: Session, question: str) -> None:
    alone = session.ask(question, AUTH, "main")
    assert alone.result["clarification"] is None
    assert "clarify" not in nodes(alone)
    assert session.ask(question, AUTH, "main", clarify=True).result["clarification"] is None
    kept = say(session, begin(session), question, clarify=False)
    assert nodes(kept) == nodes(alone)
    assert kept.result["answer"] == alone.result["answer"]


@pytest.mark.parametrize(
    "question",
    ["Who maintains the refund API?", "Which zebras paint submarines?", "and the payout API?"],
)
def test_what_has_an_answer_or_nothing_related_is_not_asked_back(
    session: Session, question: str
) -> None:
    name = begin(session)
    say(session, name, "What is the maximum timeout of the refund API?")
    run = say(session, name, question)
    assert run.result["clarification"] is None
    assert "clarify" not in nodes(run)


@pytest.mark.parametrize(("most", "asks"), [(0, 0), (1, 1), (2, 2)])
def test_it_asks_as_often_as_allowed(opened: Callable[..., Session], most: int, asks: int) -> None:
    session = opened(max_clarifications=most)
    name = begin(session)
    run = say(session, name, LOGO)
    asked = 0
    while run.result["clarification"] is not None:
        asked += 1
        run = say(session, name, "the refund logo of last year")
    assert asked == asks and run.result["refused"]
    again = say(session, name, LOGO)
    assert (again.result["clarification"] is not None) == (most > 0)  # a question of its own


def test_the_run_goes_on_within_its_budget_and_waiting_is_free(session: Session) -> None:
    name = begin(session)
    asked = say(session, name, LOGO)
    spent = asked.result["usage"]
    context = session.context(AUTH, "main", clarify=True)
    later = context.clock
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("graph.context.Context.elapsed", _elapsed_later(later))
        run = say(session, name, "payout")
    usage = run.result["usage"]
    assert usage["steps"] > spent["steps"] and usage["tool_calls"] > spent["tool_calls"]
    assert run.trail[: len(asked.trail) - 1] == asked.trail[:-1]
    assert usage["ms"] < 60_000


def _elapsed_later(clock: Callable[[], float]) -> Callable[..., Any]:
    from graph.context import Context

    original = Context.elapsed

    def elapsed(self: Context, started: float) -> Any:  # noqa: ANN401
        assert clock() - started < 60  # never since the first process was asked
        return original(self, started)

    return elapsed


def test_a_reply_after_a_restart_is_a_reply(opened: Callable[..., Session]) -> None:
    first = opened()
    name = begin(first)
    asked = say(first, name, "Who maintains it?")
    second = opened()
    run = say(second, name, "the refund API", clarify=False)
    assert run.run_id == asked.run_id
    assert "Payments Gateway" in run.result["answer"]


@pytest.mark.parametrize("node", ["clarify", "understand", "retrieve", "refuse"])
def test_a_broken_off_reply_can_be_given_again(session: Session, node: str) -> None:
    name = begin(session)
    asked = say(session, name, "Who maintains it?")

    def on_step(step: Step) -> None:
        if step.node == node:
            raise ModelCancelled("given up")

    with pytest.raises(ModelCancelled):
        say(session, name, "the lighthouse", on_step=on_step)
    assert waits(session, name)
    assert session.store.runs.load(AUTH, asked.run_id).result == asked.result
    run = say(session, name, "the refund API")
    assert "Payments Gateway" in run.result["answer"] and "lighthouse" not in run.question


def test_a_bad_reply_leaves_the_question_open(session: Session) -> None:
    name = begin(session)
    say(session, name, "Who maintains it?")
    with pytest.raises(CallerError):
        say(session, name, " ?")
    assert waits(session, name)
    assert "Payments Gateway" in say(session, name, "the refund API").result["answer"]


def test_without_its_state_a_reply_is_a_question(opened: Callable[..., Session]) -> None:
    session = opened()
    name = begin(session)
    say(session, name, "Who maintains it?")
    session.asking.close()
    for left in session.store.folder.glob(f"{THREADS}*"):
        left.unlink()
    run = say(session, name, "Who maintains the refund API?")
    assert "Payments Gateway" in run.result["answer"] and not waits(session, name)


def test_a_state_that_waits_holds_no_passage(session: Session) -> None:
    name = begin(session)
    asked = say(session, name, LOGO)
    (passage,) = {
        item["text"] for item in asked.result["evidence"] if item["source"] == "refund.md"
    }
    blobs = session.asking.threads.saver.conn.execute(
        "SELECT checkpoint FROM checkpoints WHERE thread_id = ?"
        " UNION ALL SELECT value FROM writes WHERE thread_id = ?",
        (name, name),
    ).fetchall()
    assert len(blobs) == 2  # the state, and what it asks
    assert all(passage.encode() not in blob for (blob,) in blobs)
    say(session, name, "the payout API")


def test_rights_that_ended_while_it_waited_show_nothing(session: Session) -> None:
    name = begin(session)
    boss = AuthContext(tenant="default", user="ann", roles=frozenset({"boss"}))
    asked = say(session, name, LOGO, auth=boss)
    assert "Vault refund" in asked.result["clarification"]["options"]
    kept = session.store.runs.load_conversation(AUTH, name)
    assert kept.waiting is not None and kept.waiting.clarification.options == []
    run = say(session, name, "1")  # no title stands for a number any more
    assert "x.md" not in [item["source"] for item in run.result["evidence"]]
    assert run.result["refused"] and "Vault" not in run.model_dump_json()
    assert any("gone or closed to you" in warning for warning in run.result["warnings"])


@pytest.mark.parametrize(
    ("detail", "overview"),
    [
        ("Who maintains the refund API?", "What is this about?"),
        ("How long are letters kept?", "What are the main themes?"),
        ("Кто поддерживает интерфейс возвратов?", "О чём это всё?"),
        ("Хто підтримує інтерфейс повернень?", "Про що це?"),
        ("谁维护退款接口?", "这讲的是什么？"),
    ],
)
def test_an_overview_is_given_at_any_turn_and_never_asked_back(
    session: Session, detail: str, overview: str
) -> None:
    name = begin(session)
    for text in (overview, detail, overview):
        run = say(session, name, text)
        assert run.result["clarification"] is None
        assert not run.result["refused"] and run.result["answer"]
    assert "summarise" in {step.tool for step in run.trail}
