"""Servers that misbehave: every call ends typed, in time, with its connection closed."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest
from stub_llm import MODEL, Connection, read_request, stub_llm

from core.budget import Ledger
from core.errors import ModelError
from core.settings import Settings
from models.chat import running
from models.chat.guarded import GuardedChat
from models.chat.openai_chat import server_chat
from models.chat.types import (
    Capabilities,
    ChatReply,
    ChatRequest,
    Message,
    ModelCancelled,
    ModelOverflow,
    ModelReplyError,
    ModelTimeout,
    ModelUnavailable,
    NoConnection,
)

CAN = Capabilities(kind="openai-compatible", model=MODEL, context=4096)
REQUEST = ChatRequest((Message("system", "Be brief."), Message("user", "Hello?")), max_tokens=64)
AMPLE = {"llm_first_token_seconds": 60, "llm_gap_seconds": 60, "llm_connect_seconds": 60}
SHORT = {"llm_first_token_seconds": 1, "llm_gap_seconds": 1}  # where lateness is the fault
LATE = 20  # seconds: only a deadline that is not kept takes so long, since stubs hang for 30


def chat_at(url: str, **settings: object) -> GuardedChat:
    return server_chat(Settings(**{"llm_url": url, "llm_retries": 0, **AMPLE, **settings}), CAN, "")


def ask(chat: GuardedChat) -> ChatReply:
    with contextlib.closing(chat):
        return chat.complete(REQUEST, verb="grade")


FAULTS: dict[tuple[type[ModelError], str | None], str] = {
    (ModelTimeout, "timeout"): ("silent headers_only slow_first_token gap drip comments drip_head"),
    (ModelUnavailable, "unavailable"): (
        "dies dies_in_chunk resets hangs_up broken loading busy wrong_key not_found redirect"
    ),
    (ModelReplyError, "invalid"): (
        "bad_text bad_request error_event empty malformed_json malformed_http deep_json compressed"
    ),
    (ModelError, None): (
        "no_events malformed_sse choices_null choices_text delta_text content_number no_object"
        " usage_text"
    ),
    (ModelOverflow, "overflow"): "overflow",
}


@pytest.mark.parametrize(
    ("error", "outcome", "behaviour"),
    [(*kind, behaviour) for kind, listed in FAULTS.items() for behaviour in listed.split()],
)
def test_a_fault_ends_typed_recorded_and_with_its_connection_closed(
    behaviour: str, error: type[ModelError], outcome: str | None, ledger: Ledger
) -> None:
    began = time.monotonic()
    with stub_llm(behaviour) as stub:
        with pytest.raises(ModelError) as caught:
            ask(chat_at(stub.url, **(SHORT if error is ModelTimeout else {})))
        assert time.monotonic() - began < LATE
        assert stub.closed()
        assert len(stub.requests) == 1
    assert isinstance(caught.value, error)
    (call,) = ledger.calls
    assert call.outcome == outcome or outcome is None
    assert call.error == str(caught.value)
    assert call.verb == "grade"
    assert call.lost == isinstance(caught.value, ModelTimeout | ModelUnavailable)


def test_a_wrong_key_is_named(ledger: Ledger) -> None:
    with stub_llm("wrong_key") as stub, pytest.raises(ModelUnavailable, match="CARREL_LLM__KEY"):
        ask(chat_at(stub.url))


def test_no_server_is_said_with_what_to_do(ledger: Ledger) -> None:
    with stub_llm() as stub:
        url = stub.url
    with pytest.raises(ModelUnavailable, match="carrel llm serve"):
        ask(chat_at(url, llm_retries=2))
    assert [call.outcome for call in ledger.calls] == ["unavailable"]
    assert ledger.lost


def test_a_server_that_comes_back_is_found_by_the_retry(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def serve(listener: socket.socket) -> None:
        sock, _ = listener.accept()
        with sock:
            read_request(sock)  # what is left unread would reset the connection
            event = (
                b'data: {"choices":[{"index":0,"delta":{"content":"back"},"finish_reason":"stop"}]}'
            )
            sock.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + event + b"\n\n")

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))  # refuses connections until it listens
        chat = chat_at(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", llm_retries=2)
        thread = threading.Thread(target=serve, args=[listener], daemon=True)
        receive = chat._receive

        def refused_once(*arguments: Any) -> Any:
            try:
                return receive(*arguments)
            except NoConnection:
                if not thread.ident:
                    listener.listen()
                    thread.start()
                raise

        monkeypatch.setattr(chat, "_receive", refused_once)
        assert ask(chat).text == "back"
        assert thread.ident
        thread.join(60)


def test_the_total_deadline_cuts_a_stream_of_tokens(ledger: Ledger) -> None:
    def trickle(it: Connection) -> None:
        it.head()
        for number in range(1000):
            it.delta(content=f" {number}")
            time.sleep(0.05)

    with stub_llm(trickle) as stub:
        with pytest.raises(ModelTimeout, match="llm.call_seconds"):
            ask(chat_at(stub.url, llm_call_seconds=2))
        assert stub.closed()
    assert ledger.calls[0].completion_tokens > 0
    assert ledger.calls[0].reply.startswith("0 1")


def test_the_run_ends_its_calls(ledger: Ledger) -> None:
    ledger.deadline = time.monotonic() + 1
    with stub_llm("silent") as stub:
        with pytest.raises(ModelTimeout, match="the run's own time"):
            ask(chat_at(stub.url, llm_first_token_seconds=30))
        assert stub.closed()


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        *((behaviour, ModelCancelled) for behaviour in ("silent", "gap", "comments")),
        ("silent", KeyboardInterrupt),
    ],
)
def test_a_caller_who_gives_up_or_interrupts_closes_the_connection(
    behaviour: str, error: type[BaseException], ledger: Ledger
) -> None:
    def cancelled() -> bool:
        if stub.requests and error is KeyboardInterrupt:
            raise error
        return bool(stub.requests)

    with stub_llm(behaviour) as stub:
        ledger.cancelled = cancelled
        with pytest.raises(error):
            ask(chat_at(stub.url, llm_first_token_seconds=30, llm_gap_seconds=30))
        assert stub.closed()
    assert ledger.calls[0].outcome == "cancelled"


@pytest.mark.parametrize(
    ("behaviour", "reply_bytes", "memory"),
    [("gigabyte_line", 8_000_000, 50_000_000), ("empty_chunks", 300_000, 3_000_000)],
)
def test_a_flood_is_cut_before_it_fills_the_memory(
    behaviour: str, reply_bytes: int, memory: int, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "REPLY_BYTES", reply_bytes)
    with stub_llm("good") as stub:
        ask(chat_at(stub.url))  # what the libraries load the first time is no flood
    with stub_llm(behaviour) as stub:
        chat = chat_at(stub.url, llm_first_token_seconds=30)
        tracemalloc.start()
        try:
            with pytest.raises(ModelReplyError, match="bytes"):
                ask(chat)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert stub.closed()
    assert peak < memory


@pytest.mark.parametrize(
    ("behaviour", "outcome"),
    [("infinite", "length"), ("length", "length"), ("repeats", "repeated")],
)
def test_a_reply_that_goes_on_or_was_cut_is_said(
    behaviour: str, outcome: str, ledger: Ledger
) -> None:
    with stub_llm(behaviour) as stub:
        reply = ask(chat_at(stub.url))
        assert stub.closed()
    assert reply.finish == ledger.calls[0].outcome == outcome
    if behaviour == "infinite":
        assert reply.text.startswith("1 2 3")
        assert ledger.calls[0].completion_tokens == REQUEST.max_tokens + 1


def test_a_stream_is_read_with_its_usage_and_max_tokens_is_sent(ledger: Ledger) -> None:
    heard: list[str] = []
    with stub_llm(["a streamed reply"]) as stub:
        chat = chat_at(stub.url)
        reply = chat.complete(REQUEST, verb="grade", on_text=heard.append)
        chat.close()
        (body,) = stub.requests
    assert reply == ChatReply("a streamed reply")
    assert "".join(heard) == reply.text
    assert len(heard) > 1
    assert body["max_tokens"] == 64
    assert body["stream"] is True
    assert "cache_prompt" not in body and "id_slot" not in body
    call = ledger.calls[0]
    assert (call.prompt_tokens, call.completion_tokens) == (7, 6)
    assert 0 < call.first_ms <= call.ms


def test_thinking_that_the_server_parts_from_the_text_is_kept_apart(ledger: Ledger) -> None:
    def think(it: Connection) -> None:
        it.head()
        it.delta(reasoning_content="let me ")
        it.delta(reasoning_content="see")
        it.delta(content="the answer")
        it.end(3)

    def only_think(it: Connection) -> None:
        it.head()
        it.delta(reasoning_content='so: {"grade": 2}')
        it.end(1)

    heard: list[str] = []
    with stub_llm(think) as stub, contextlib.closing(chat_at(stub.url)) as chat:
        reply = chat.complete(REQUEST, verb="write", on_text=heard.append)
    assert reply == ChatReply("the answer", reasoning="let me see")
    assert "".join(heard) == "the answer"
    schema = {"type": "object", "required": ["grade"]}
    with stub_llm(only_think) as stub, contextlib.closing(chat_at(stub.url)) as chat:
        reply = chat.complete(replace(REQUEST, schema=schema), verb="grade")
    assert reply.text == '{"grade": 2}'


def test_no_proxy_is_used_for_this_machine(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "OPENAI_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with stub_llm() as stub:
        assert ask(chat_at(stub.url)).text == "a good reply"
