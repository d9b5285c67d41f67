"""A real model on a real server (`make test-llm`): one short call, and a checked answer."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from llama_servers import served

from app.session import Session
from core.auth import AuthContext
from core.settings import Settings
from models.chat.open_chat import wanted_chat
from reasoning.llm.exam import Examiner

GGUF = os.environ.get("CARREL_TEST_GGUF", "")
pytestmark = pytest.mark.skipif(
    not GGUF, reason="no real model: set CARREL_TEST_GGUF to a GGUF file (`make test-llm`)"
)
ASKED = {
    "What is the default timeout of the order query API?": "30",
    "How many valid access tokens can a merchant hold?": "5",
    "When will version 1 of the API be switched off?": "2027",
}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    folder = tmp_path_factory.mktemp("real")
    with served(Path(GGUF), folder / "server.log", slots=1) as server:
        if server is None:
            pytest.skip("no llama-server: set CARREL_LLAMA__SERVER")
        yield {
            "reasoner": "llm",
            "llm_url": server.url,
            "llm_key": server.key,
            "cache": folder / "cache",
            "answer_by_seconds": 120,
        }


@pytest.mark.parametrize("question", ASKED)
def test_a_plain_question_is_one_short_call(
    question: str, examples: Session, settings: dict[str, object]
) -> None:
    before = examples.settings
    examples.settings = before.model_copy(
        update=Settings(**settings).model_dump(include=set(settings))
    )
    examples._chat = (wanted_chat(Settings(**settings)), "")
    try:
        run = examples.ask(question, AuthContext(tenant="default"), "xpay")
    finally:
        assert examples._chat[0] is not None
        examples._chat[0].close()
        examples._chat, examples.settings = (None, ""), before
    calls = [call for step in run.trail for call in step.calls]
    assert 1 <= len(calls) <= 2
    assert all(call.prompt_tokens <= 1200 for call in calls)
    assert ASKED[question] in run.result["answer"]
    assert run.result["claims"]


def test_an_exam_of_a_minute_says_what_it_rests_on(settings: dict[str, object]) -> None:
    given = Settings(**settings)
    chat = wanted_chat(given)
    try:
        result = Examiner(chat, given, None).run(time.monotonic() + 60, lambda _: None)
    finally:
        chat.close()
    assert result.items
    found = result.decisions(given.answer_by_seconds)
    assert sum(one.items for one in found.values()) == len(result.items)
