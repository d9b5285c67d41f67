"""The whole graph with a real server and a model that talks nonsense: it cannot break a run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from llama_servers import RunningServer

from app.session import Session
from core.auth import AuthContext
from core.fields.chat import DECISIONS
from core.settings import Settings, load_settings
from core.trace import StreamEvent
from models.chat.open_chat import open_chat
from models.chat.types import ChatModel
from reasoning.types import Turn

TOKENS = 120
PARTS = 5  # sub-questions at most, each of which is answered on its own
QUESTIONS = [
    ("xpay", "XPay 退款接口 timeout 最大多少?谁维护?最近有投诉吗?"),
    (
        "xpay",
        "What is the maximum timeout of the XPay refund API, who maintains it,"
        " and have there been complaints recently?",
    ),
    ("library", "What can I read on physics for a general audience?"),
    ("xpay", "How many complaints did YPay receive about its refund timeout?"),
    ("library", "Какая книга объясняет, как горит свеча?"),
]


@pytest.fixture(scope="module")
def chat(llama_server: RunningServer) -> Iterator[ChatModel]:
    settings, _ = load_settings(
        {
            "reasoner": "llm",
            "llm_url": llama_server.url,
            "llm_key": llama_server.key,
        }
    )
    model, warning = open_chat(settings)
    assert model is not None, warning
    yield model
    model.close()


@pytest.fixture
def session(examples: Session, chat: ChatModel) -> Iterator[Session]:
    settings = examples.settings
    few: dict[str, object] = {"llm_decision_tokens": TOKENS, "llm_answer_tokens": TOKENS}
    few["llm_decisions"] = list(DECISIONS)
    examples.settings = settings.model_copy(update=few)
    examples._chat = (chat, "")
    yield examples
    examples._chat = (None, "")
    examples.settings = settings


@pytest.mark.parametrize(("collection", "question"), QUESTIONS)
def test_every_decision_is_valid_or_degraded(
    collection: str, question: str, session: Session
) -> None:
    events: list[StreamEvent] = []
    run = session.ask(question, AuthContext(tenant="default"), collection, on_stream=events.append)
    settings: Settings = session.settings
    usage = run.result["usage"]
    assert usage["model_calls"] >= 1
    assert usage["tokens"] <= settings.budget.tokens
    assert usage["ms"] <= settings.budget.seconds * 1000
    for step in run.trail:
        verbs = {verb for verb, _ in itertools.groupby(call.verb for call in step.calls)}
        for verb in verbs:
            calls = [call for call in step.calls if call.verb == verb]
            bad = [call for call in calls if call.outcome != "ok"]
            sent = [call for call in calls if call.outcome != "overflow"]
            assert len(sent) <= 3 * (PARTS if verb == "answer" else 1)
            # Claims that were whole are kept when the reply to which they belong breaks off.
            partly = verb == "answer" and step.decision != "0 claims"
            if len(bad) == len(calls) and not partly:
                assert f"{verb}: " in step.degraded
        for call in step.calls:  # a plan of several questions may be twice as long
            assert call.completion_tokens <= TOKENS * (2 if call.verb == "plan" else 1)
    shown = "".join(event.text for event in events if event.kind == "sentence")
    assert run.result["answer"].startswith(shown)
    cited = {c["chunk_id"] for claim in run.result["claims"] for c in claim["citations"]}
    assert run.result["refused"] or cited


def skip_without_slots(server: RunningServer) -> None:
    if not server.is_llama_server:
        pytest.skip("only llama-server says what its slots still hold")


def test_a_dialogue_reuses_what_the_server_has_read(
    session: Session, llama_server: RunningServer
) -> None:
    skip_without_slots(llama_server)
    history: list[Turn] = []
    calls = []
    caller = AuthContext(tenant="default", user="dee")
    for question in ("What is the default timeout of the order query API?", "And the maximum?"):
        run = session.ask(question, caller, "xpay", history=history)
        history.append(Turn(question, run.result["answer"]))
        calls += [call for step in run.trail for call in step.calls]
    assert sum(call.cached_tokens for call in calls) > sum(c.prompt_tokens for c in calls) / 3


def test_another_caller_never_reads_from_a_warm_slot(
    session: Session, llama_server: RunningServer
) -> None:
    skip_without_slots(llama_server)
    question = "What is the default timeout of the order query API?"
    firsts = {}
    for user in ("ann", "bob", "ann", "cy"):
        run = session.ask(question, AuthContext(tenant="default", user=user), "xpay")
        first = next(call for step in run.trail for call in step.calls)
        firsts.setdefault(user, []).append(first.cached_tokens)
    assert len({held[0] for held in firsts.values()}) == 1  # what never changes, the same for all
    assert firsts["ann"][1] > 0
