"""A chat model of another provider, by LangChain's name for it: the same clocks and errors."""

from __future__ import annotations

import time

import pytest
from stub_llm import stub_llm

from core.budget import Ledger, opened_ledger
from core.settings import Settings
from models.chat.open_chat import open_chat
from models.chat.types import ChatRequest, Message, ModelTimeout, ModelUnavailable

ASK = ChatRequest((Message("user", "Who?"),), 50)
pytest.importorskip("langchain", reason="the extra `providers` is not installed")


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch):  # noqa: ANN201
    def point(url: str, **values: object) -> Settings:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        return Settings(reasoner="llm", llm_provider="openai:stub", **values)

    return point


def opened(settings: Settings):  # noqa: ANN201
    chat, why = open_chat(settings)
    assert chat is not None, why
    return chat


def test_a_provider_answers_and_is_charged(at) -> None:  # noqa: ANN001
    with stub_llm("good") as stub:
        chat = opened(at(stub.url))
        heard: list[str] = []
        with opened_ledger(Ledger(time.monotonic() + 20, 10_000)) as ledger:
            reply = chat.complete(ASK, verb="answer", on_text=heard.append)
        assert reply.text == "".join(heard) == "a good reply"
        assert [call.outcome for call in ledger.calls] == ["ok"]
        assert stub.requests[0]["model"] == chat.capabilities.model == "stub"
        assert chat.capabilities.kind == "provider" and chat.capabilities.digest


def test_a_silent_provider_is_left_in_time(at) -> None:  # noqa: ANN001
    with stub_llm("silent") as stub:
        chat = opened(at(stub.url, llm_first_token_seconds=0.5))
        began = time.monotonic()
        with (
            opened_ledger(Ledger(time.monotonic() + 20, 10_000)),
            pytest.raises(ModelTimeout, match="llm.first_token_seconds"),
        ):
            chat.complete(ASK, verb="answer")
        assert time.monotonic() - began < 5


def test_an_error_of_a_provider_is_the_models(at) -> None:  # noqa: ANN001
    with stub_llm("wrong_key") as stub:
        chat = opened(at(stub.url))
        with (
            opened_ledger(Ledger(time.monotonic() + 20, 10_000)),
            pytest.raises(ModelUnavailable, match="provider"),
        ):
            chat.complete(ASK, verb="answer")


@pytest.mark.parametrize("name", ["nosuchprovider:model", "ollama:qwen3"])
def test_what_is_not_installed_leaves_the_rules_and_says_so(name: str) -> None:
    chat, why = open_chat(Settings(reasoner="llm", llm_provider=name))
    assert chat is None
    assert name in why and "the rules decide" in why


def test_servers_of_others_are_found_on_their_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    from models.chat import open_chat as probe

    with stub_llm("good") as stub:
        ports = (("Ollama", stub.url), ("LM Studio", "http://localhost:9/v1"))
        monkeypatch.setattr(probe, "USUAL", ports)
        assert probe.servers_found() == [{"name": "Ollama", "url": stub.url}]
