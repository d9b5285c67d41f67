"""Contract of ChatModel: a reply within the ledger's limits, and a record of every call."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from chat_doubles import scripted_chat
from stub_llm import stub_llm

from core.budget import Ledger, opened_ledger
from core.settings import Settings
from models.chat.open_chat import wanted_chat
from models.chat.types import (
    ChatModel,
    ChatRequest,
    Message,
    ModelCancelled,
    ModelOverflow,
    ModelTimeout,
)

REPLIES = 30  # of a script, more than a test asks for


def _scripted(request: pytest.FixtureRequest) -> Iterator[ChatModel]:
    yield scripted_chat(["a good reply"] * REPLIES)


def _server(request: pytest.FixtureRequest) -> Iterator[ChatModel]:
    with stub_llm("good") as stub:
        yield wanted_chat(Settings(reasoner="llm", llm_url=stub.url))


def _real_server(request: pytest.FixtureRequest) -> Iterator[ChatModel]:
    server = request.getfixturevalue("llama_server")
    yield wanted_chat(Settings(reasoner="llm", llm_url=server.url, llm_key=server.key))


def _provider(request: pytest.FixtureRequest) -> Iterator[ChatModel]:
    pytest.importorskip("langchain", reason="the extra `providers` is not installed")
    with stub_llm("good") as stub:
        patch = request.getfixturevalue("monkeypatch")
        patch.setenv("OPENAI_API_KEY", "none")
        patch.setenv("OPENAI_BASE_URL", stub.url)
        yield wanted_chat(Settings(reasoner="llm", llm_provider="openai:stub"))


def _file(request: pytest.FixtureRequest) -> Iterator[ChatModel]:
    pytest.importorskip("llama_cpp")
    model = request.getfixturevalue("tiny_model")
    yield wanted_chat(
        Settings(reasoner="llm", llm_file=str(model), llm_context=2048, llm_threads=1)
    )


MODELS: dict[str, Callable[[pytest.FixtureRequest], Iterator[ChatModel]]] = {
    "scripted": _scripted,
    "stub server": _server,
    "llama-server": _real_server,
    "provider": _provider,
    "file in this process": _file,
}


@pytest.fixture(params=MODELS)
def chat(request: pytest.FixtureRequest) -> Iterator[ChatModel]:
    for model in MODELS[request.param](request):
        yield model
        model.close()


def asked(text: str = "Where is the harbour?", max_tokens: int = 24) -> ChatRequest:
    return ChatRequest((Message("system", "Be brief."), Message("user", text)), max_tokens)


@contextmanager
def ledger(seconds: float = 60, tokens: int = 1_000_000) -> Iterator[Ledger]:
    with opened_ledger(Ledger(time.monotonic() + seconds, tokens)) as opened:
        yield opened


def test_a_reply_is_heard_as_it_comes_and_recorded(chat: ChatModel) -> None:
    assert chat.name and chat.name == chat.capabilities.model
    heard: list[str] = []
    with ledger() as opened:
        reply = chat.complete(asked(), verb="write", on_text=heard.append)
    assert reply.text and reply.text == "".join(heard)
    [call] = opened.calls
    assert (call.verb, call.reply) == ("write", reply.text)
    assert call.outcome == ("ok" if reply.finish == "stop" else reply.finish)
    assert call.prompt_tokens > 0 and call.completion_tokens > 0
    assert opened.spent == call.prompt_tokens + call.completion_tokens


def test_what_does_not_fit_is_not_sent(chat: ChatModel) -> None:
    small, large = asked(), asked("harbour " * 9 * chat.capabilities.context)
    assert chat.room(small) > chat.room(asked(max_tokens=25)) > chat.room(large)
    assert chat.room(small) > 0 > chat.room(large)
    with ledger() as opened, pytest.raises(ModelOverflow):
        chat.complete(large, verb="write")
    assert [call.outcome for call in opened.calls] == ["overflow"]


def test_a_run_without_tokens_makes_no_call(chat: ChatModel) -> None:
    with ledger(tokens=1) as opened, pytest.raises(ModelOverflow, match="tokens"):
        chat.complete(asked(), verb="write")
    assert [call.outcome for call in opened.calls] == ["overflow"]


def test_a_call_after_the_deadline_of_its_run_is_too_late(chat: ChatModel) -> None:
    with ledger(seconds=-1) as opened, pytest.raises(ModelTimeout):
        chat.complete(asked(), verb="write")
    assert [call.outcome for call in opened.calls] == ["timeout"]


def test_whoever_gives_up_is_not_kept_waiting(chat: ChatModel) -> None:
    with ledger() as opened:
        opened.cancelled = lambda: True
        with pytest.raises(ModelCancelled):
            chat.complete(asked(max_tokens=200), verb="write")
    assert [call.outcome for call in opened.calls] == ["cancelled"]
    with ledger():  # the next one is answered
        assert chat.complete(asked(), verb="write").text


def test_calls_of_many_threads_are_each_answered_and_charged(chat: ChatModel) -> None:
    def ask(number: int) -> tuple[str, list[str]]:
        with ledger() as opened:
            opened.owner = f"user {number}"
            text = chat.complete(asked(max_tokens=16), verb=f"verb {number}").text
        return text, [call.verb for call in opened.calls]

    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(ask, range(8)))
    assert all(text for text, _ in replies)
    assert [verbs for _, verbs in replies] == [[f"verb {number}"] for number in range(8)]
