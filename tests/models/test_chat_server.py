"""The guarded chat model on a real llama.cpp server."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from llama_servers import RunningServer

from core.budget import Ledger, opened_ledger
from core.settings import Settings
from models.chat.guarded import GuardedChat
from models.chat.open_chat import open_chat
from models.chat.types import ChatRequest, Message, ModelCancelled, ModelOverflow

SCHEMA = {
    "type": "object",
    "properties": {"grade": {"enum": ["no", "yes"]}, "why": {"type": "string", "maxLength": 20}},
    "required": ["grade", "why"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def chat(
    llama_server: RunningServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GuardedChat]:
    cache = tmp_path_factory.mktemp("cache")
    settings = Settings(
        reasoner="llm", llm_url=llama_server.url, llm_key=llama_server.key, cache=cache
    )
    model, warning = open_chat(settings)
    assert isinstance(model, GuardedChat), warning
    yield model
    model.close()


def ledger(owner: str = "ann") -> Ledger:
    return Ledger(time.monotonic() + 60, 1_000_000, owner)


def asked(text: str, **values: object) -> ChatRequest:
    return ChatRequest((Message("user", text),), **{"max_tokens": 64, **values})  # type: ignore[arg-type]


def test_decisions_keep_to_their_schema(chat: GuardedChat) -> None:
    with opened_ledger(ledger()) as opened:
        for number in range(5):
            reply = chat.complete(asked(f"Question {number}?", schema=SCHEMA), verb="grade")
            assert json.loads(reply.text)["grade"] in ("no", "yes")
    assert all(call.completion_tokens > 3 and call.prompt_tokens > 8 for call in opened.calls)


def test_the_prompt_is_counted_as_the_server_counts_it(chat: GuardedChat) -> None:
    request = asked("Числа 1234567890 и 漢字, each a token or more. " * 20)
    counted = chat.capabilities.context - chat.room(request) - request.max_tokens
    with opened_ledger(ledger()) as opened:
        chat.complete(request, verb="write")
    real = opened.calls[0].prompt_tokens
    assert real <= counted <= real + 32


def test_nothing_overflows_the_server(chat: GuardedChat) -> None:
    size = chat.capabilities.context
    base = size - chat.room(asked("", max_tokens=16)) - 16
    for extra, fits in ((-1, True), (0, True), (1, False), (9 * size, False)):
        request = asked("1" * (size - base - 16 + extra), max_tokens=16)
        with opened_ledger(ledger()) as opened:
            if fits:
                chat.complete(request, verb="write")
            else:
                with pytest.raises(ModelOverflow):
                    chat.complete(request, verb="write")
            assert opened.calls[0].outcome == "overflow" or fits


def test_a_cancelled_call_frees_its_slot(chat: GuardedChat, llama_server: RunningServer) -> None:
    if not llama_server.is_llama_server:
        pytest.skip("only llama-server has slots")
    heard: list[str] = []
    opened = ledger()
    opened.cancelled = lambda: len(heard) > 3
    with opened_ledger(opened), pytest.raises(ModelCancelled):
        chat.complete(asked("Tell.", max_tokens=8000), verb="write", on_text=heard.append)
    until = time.monotonic() + 60
    while busy(llama_server) and time.monotonic() < until:
        time.sleep(0.01)
    assert not busy(llama_server)


def busy(server: RunningServer) -> bool:
    address = server.url.removesuffix("/v1") + "/slots"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {server.key}"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return any(slot["is_processing"] for slot in json.load(reply))


def test_the_prompt_cache_serves_one_owner(chat: GuardedChat, llama_server: RunningServer) -> None:
    if not llama_server.is_llama_server:
        pytest.skip("only llama-server has slots")
    cached = {}
    for turn, owner in enumerate(["carl", "carl", "dora", "emil", "carl"]):
        with opened_ledger(ledger(owner)) as opened:
            chat.complete(asked("The same long beginning. " * 40 + str(turn)), verb="write")
        cached[turn] = opened.calls[0].cached_tokens
    assert cached[1] > 800
    assert cached[0] == cached[2] == cached[3] == cached[4] == 0


def test_many_users_at_once_each_get_their_own_answer(chat: GuardedChat) -> None:
    def grade(user: int) -> set[str]:
        schema = {"type": "object", "properties": {"user": {"enum": [f"u{user}"]}}}
        schema |= {"required": ["user"], "additionalProperties": False}
        with opened_ledger(ledger(f"owner {user}")):
            replies = [chat.complete(asked("Who?", schema=schema), verb="grade") for _ in range(5)]
        return {json.loads(reply.text)["user"] for reply in replies}

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(grade, range(8))) == [{f"u{user}"} for user in range(8)]


STATIC = (Message("system", "Answer."), Message("user", "Who?"), Message("assistant", "Ann."))


def test_what_never_changes_is_read_once_and_tells_nothing_of_others(
    chat: GuardedChat, llama_server: RunningServer
) -> None:
    """A slot that was another caller's holds the beginning of the prompt, and only that."""
    if not llama_server.is_llama_server:
        pytest.skip("only llama-server has slots")
    beginning = 0
    for place, owner in enumerate(("ann", "bob", "bob", "cem")):
        said = Message("user", f"Question of {owner}? " * 30)
        request = ChatRequest((*STATIC, said), 8, static=len(STATIC))
        with opened_ledger(ledger(owner)) as opened:
            chat.complete(request, verb="answer")
        if not chat._keeps_prefixes:
            pytest.skip("this llama-server keeps no slots (--slot-save-path)")
        (call,) = opened.calls
        if place == 0:
            beginning = call.cached_tokens
        elif place == 2:
            assert call.cached_tokens > 2 * beginning > 0  # bob's own question again
        else:
            assert call.cached_tokens == beginning
