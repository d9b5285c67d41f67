"""Every verb over a real llama.cpp server that talks nonsense: valid or degraded."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from builders import asking, graded, piece, weights_for
from llama_servers import CONTEXT, SLOTS, RunningServer
from llm_doubles import tool
from pydantic_core import from_json

from core.budget import Ledger, opened_ledger
from core.fields.chat import DECISIONS
from core.settings import Settings
from core.trace import ModelCall
from core.types import Part, Plan, Understanding
from models.chat.guarded import GuardedChat
from models.chat.openai_chat import server_chat
from models.chat.types import Capabilities
from reasoning.llm.deciding import Decider
from reasoning.llm.plan import SLOT, PlannedQuestion, plan_of
from reasoning.llm.reasoner import LlmReasoner
from reasoning.llm.replies import Unfit, loaded
from reasoning.llm.searching import MOST_TOOLS, LlmPassageWriter
from reasoning.rules.reasoner import RulesReasoner
from reasoning.types import Turn

QUESTIONS = {
    "en": "How long does the refund API wait, and who maintains it?",
    "ru": "Сколько ждёт интерфейс возврата, и кто его обслуживает?",
    "uk": "Скільки чекає інтерфейс повернення, і хто його обслуговує?",
    "zh": "退款接口等待多长时间?谁维护它?",
}
ITEMS = [graded(piece("The refund API waits 30 seconds.")), graded(piece("Alice maintains it."))]
TOOLS = [tool("search_api", "API reference."), tool("find_service", "Who owns what.")]
SETTINGS = {"llm_decision_tokens": 96, "llm_answer_tokens": 128}


@pytest.fixture(scope="module")
def chat(llama_server: RunningServer) -> Iterator[GuardedChat]:
    capabilities = Capabilities(
        kind="llama-server" if llama_server.is_llama_server else "llama_cpp.server",
        model="tiny",
        structured="json_schema" if llama_server.is_llama_server else "json_object",
        context=CONTEXT,
        slots=SLOTS,
        pins_slots=llama_server.is_llama_server,
        tokenizes=llama_server.is_llama_server,
    )
    settings = Settings(llm_url=llama_server.url, **SETTINGS)
    made = server_chat(settings, capabilities, llama_server.key)
    yield made
    made.close()


@pytest.mark.parametrize("language", QUESTIONS)
def test_every_verb_is_valid_or_degraded(chat: GuardedChat, language: str) -> None:
    settings = Settings(**SETTINGS)
    text = QUESTIONS[language]
    reasoner = LlmReasoner(
        chat,
        RulesReasoner(settings, weights_for(ITEMS), None),
        settings,
        embedder=None,
        verbs=frozenset(DECISIONS),
    )
    question = asking(text, language)
    known = Understanding(
        question=text, language=language, required_fields=["text"], parts=[Part(text=text)]
    )
    calls: list[ModelCall] = []
    for decide in (
        lambda: reasoner.understand(text, [Turn("Where?", "There.")]),
        lambda: reasoner.plan(known, TOOLS),
        lambda: reasoner.plan(known.model_copy(update={"kind": "multi"}), TOOLS),
        lambda: reasoner.grade(question, ITEMS),
        lambda: reasoner.rewrite(question, ITEMS, TOOLS),
        lambda: reasoner.extract(question, ITEMS),
        lambda: reasoner.answer(known, Plan(questions=[question]), ITEMS),
        lambda: reasoner.supports("It waits.", ["它等待。"], language),
    ):
        with opened_ledger(Ledger(time.monotonic() + 60, 100_000, owner="test")) as ledger:
            decide()
        assert 1 <= len(ledger.calls) <= 3
        assert ledger.degraded or ledger.calls[-1].outcome != "invalid"
        calls += ledger.calls
    written = {"understand", "rewrite", "extract"}  # the others are one token, or plain sentences
    decided = [call for call in calls if call.verb in written]
    ended = [call for call in decided if call.outcome in ("ok", "invalid")]
    assert decided
    assert [call for call in ended if not is_object(call.reply)] == []


def test_a_server_lets_only_plans_of_the_schema_through(chat: GuardedChat) -> None:
    settings = Settings(llm_decision_tokens=200)
    text = QUESTIONS["en"]
    asked = Understanding(
        question=text, kind="multi", language="en", required_fields=["text"] * 2,
        parts=[Part(text="How long does it wait?"), Part(text="Who maintains it?")],
    )  # fmt: skip
    ask = plan_of(asked, TOOLS, Decider(chat, settings))
    with opened_ledger(Ledger(time.monotonic() + 60, 100_000)):
        reply = chat.complete(ask.make(()), verb="plan")
    # A random model seldom ends its strings, so the reply may be cut; what it holds is whole.
    questions = from_json(reply.text, allow_partial=True)["questions"]
    whole = questions if reply.finish == "stop" else questions[:-1]
    assert 1 <= len(whole) <= settings.answering.max_sub_questions
    ids = {f"q{place}" for place in range(1, settings.answering.max_sub_questions + 1)}
    for question in whole:
        proposed = PlannedQuestion.model_validate(question)
        assert ids.issuperset({proposed.id, *proposed.deps})
        assert len(proposed.deps) <= settings.plan.in_degree
        assert re.fullmatch(SLOT, proposed.slot or "")
        assert {spec.name for spec in TOOLS}.issuperset(proposed.tools)
        assert 1 <= len(proposed.tools) <= MOST_TOOLS


def is_object(text: str) -> bool:
    try:
        loaded(text)
    except Unfit:
        return False
    return True


def test_a_passage_is_text(chat: GuardedChat) -> None:
    with opened_ledger(Ledger(time.monotonic() + 60, 100_000)) as ledger:
        passage = LlmPassageWriter(chat, Settings(**SETTINGS)).write_passage("Why?", "en")
    assert passage
    assert [call.verb for call in ledger.calls] == ["passage"]
