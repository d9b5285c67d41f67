"""A GGUF model in this process does what a server would, and stops when it has to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import gguf
import pytest
import tiny_gguf
from langchain_core.messages import AIMessageChunk, HumanMessage, SystemMessage

from core import distribution
from core.budget import Ledger, opened_ledger
from core.errors import ModelError
from core.settings import Settings
from models.chat.guarded import GuardedChat
from models.chat.llama_cpp_chat import LlamaCppChat, open_gguf_chat
from models.chat.types import (
    Capabilities,
    ChatRequest,
    Message,
    ModelCancelled,
    ModelOverflow,
    ModelTimeout,
)

pytest.importorskip("llama_cpp")

QUESTION = [SystemMessage("Answer in one sentence."), HumanMessage("Where is the harbour?")]
SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string"}, "kind": {"enum": ["noun", "verb"]}},
    "required": ["word", "kind"],
}


def settings_of(model: Path | str) -> Settings:
    return Settings(llm_file=str(model), llm_context=2048, llm_threads=1)


@pytest.fixture(scope="module")
def opened(tiny_model: Path) -> Iterator[tuple[LlamaCppChat, Capabilities]]:
    chat, capabilities = open_gguf_chat(settings_of(tiny_model))
    yield chat, capabilities
    chat.close()


@pytest.fixture
def chat(opened: tuple[LlamaCppChat, Capabilities]) -> LlamaCppChat:
    return opened[0]


@pytest.fixture
def guarded(opened: tuple[LlamaCppChat, Capabilities], tiny_model: Path) -> GuardedChat:
    return GuardedChat(*opened, settings_of(tiny_model))


def streamed(chat: LlamaCppChat, **sent: object) -> AIMessageChunk:
    chunks = list(chat.stream(QUESTION, **sent))
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return whole


def ledger(owner: str = "one", seconds: float = 30) -> Ledger:
    return Ledger(time.monotonic() + seconds, 100_000, owner)


def test_what_it_can_do(opened: tuple[LlamaCppChat, Capabilities], tiny_model: Path) -> None:
    can = opened[1]
    assert (can.kind, can.model, can.structured) == ("in-process", tiny_model.stem, "json_object")
    assert (can.context, can.slots, can.tokenizes) == (2048, 1, True)
    assert (can.thinking, can.switches) == ("none", False)


def test_a_reply_arrives_in_pieces_with_its_usage(
    chat: LlamaCppChat, capfd: pytest.CaptureFixture[str]
) -> None:
    pieces = [chunk.text for chunk in chat.stream(QUESTION, max_tokens=12) if chunk.text]
    reply = streamed(chat, max_tokens=12)
    assert len(pieces) > 3
    assert reply.text == "".join(pieces)
    usage = reply.usage_metadata
    assert usage is not None
    prompt = chat.render(QUESTION)
    assert prompt.endswith("<|im_start|>assistant\n")
    assert usage["input_tokens"] == len(chat._tokens(prompt, special=True))
    assert usage["output_tokens"] == 12
    assert reply.response_metadata["finish_reason"] == "length"
    assert streamed(chat, max_tokens=1000).response_metadata["finish_reason"] == "stop"
    assert capfd.readouterr() == ("", "")


def test_the_seed_repeats_a_reply(chat: LlamaCppChat) -> None:
    one, same, other = (streamed(chat, max_tokens=30, seed=seed).text for seed in (1, 1, 2))
    assert one == same != other


def test_a_schema_is_kept(chat: LlamaCppChat) -> None:
    form = {"type": "json_object", "schema": SCHEMA}
    for seed in range(3):
        reply = streamed(chat, max_tokens=400, seed=seed, temperature=1, response_format=form)
        assert reply.response_metadata["finish_reason"] == "stop"
        assert json.loads(reply.text, strict=False)["kind"] in ("noun", "verb")


def cached(chat: LlamaCppChat, owner: str) -> int:
    with opened_ledger(ledger(owner)):
        usage = streamed(chat, max_tokens=2).usage_metadata
    assert usage is not None
    return usage["input_token_details"]["cache_read"]


def test_a_prompt_is_reused_for_its_owner_alone(chat: LlamaCppChat) -> None:
    cached(chat, "ann")
    assert cached(chat, "ann") > 40
    assert cached(chat, "bob") == 0
    assert cached(chat, "ann") == 0


def test_an_abandoned_reply_frees_the_model(chat: LlamaCppChat) -> None:
    stream = chat.stream(QUESTION, max_tokens=1000)
    next(stream)
    stream.close()
    assert streamed(chat, max_tokens=2).text


def test_requests_wait_for_each_other(chat: LlamaCppChat) -> None:
    alone = streamed(chat, max_tokens=20).text
    replies: list[str] = []
    threads = [
        threading.Thread(target=lambda: replies.append(streamed(chat, max_tokens=20).text))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == [alone] * 4


def test_a_call_that_waits_or_reads_is_ended_in_time(guarded: GuardedChat) -> None:
    request = ChatRequest((Message("user", "a" * 1500),), 16)
    chat = guarded.llm
    assert isinstance(chat, LlamaCppChat)
    with chat._turn(), opened_ledger(ledger(seconds=0.3)), pytest.raises(ModelTimeout):
        guarded.complete(request, verb="answer")
    looks = iter([False] * 4)
    gives_up = replace(ledger(), cancelled=lambda: next(looks, True))
    with opened_ledger(gives_up), pytest.raises(ModelCancelled):
        guarded.complete(request, verb="answer")
    assert 0 < chat._llm.n_tokens < 1500  # it stopped between two batches of the prompt
    with opened_ledger(ledger()):
        assert guarded.complete(request, verb="answer").text


def test_a_prompt_that_does_not_fit(chat: LlamaCppChat) -> None:
    with pytest.raises(ModelOverflow, match="2048"):
        list(chat.stream([HumanMessage("a" * 3000)], max_tokens=1))


def test_a_switch_for_thinking_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    off = "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}"
    monkeypatch.setattr(tiny_gguf, "CHAT_TEMPLATE", tiny_gguf.CHAT_TEMPLATE + off)
    chat, can = open_gguf_chat(settings_of(tiny_gguf.write_tiny_gguf(tmp_path / "thinks.gguf")))
    assert (can.thinking, can.switches) == ("switch", True)
    assert streamed(chat, max_tokens=3, chat_template_kwargs={"enable_thinking": False}).text
    chat.close()


def test_files_that_cannot_chat(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelError, match="No such file"):
        open_gguf_chat(settings_of(tmp_path / "none.gguf"))
    foreign = tmp_path / "foreign.gguf"
    foreign.write_bytes(tiny_model.read_bytes().replace(b"qwen3", b"qwen0"))
    with pytest.raises(ModelError, match="cannot load"):
        open_gguf_chat(settings_of(foreign))
    monkeypatch.setattr(gguf.GGUFWriter, "add_chat_template", lambda *_: None)
    with pytest.raises(ModelError, match="no chat template"):
        open_gguf_chat(settings_of(tiny_gguf.write_tiny_gguf(tmp_path / "base.gguf")))
    monkeypatch.setattr(distribution, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match="pip install"):
        open_gguf_chat(settings_of(tiny_model))
