"""A kept conversation through OpenAI's own client: a header asks for it, and without it nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from protocol_servers import ANSWER, QUESTION, Server

from core.auth import AuthContext
from serve.protocols.openai_schemas import CONVERSATION_HEADER, show_clarification

MODEL = "carrel:xpay"
READER = AuthContext(tenant="default", user="reader")
HEADER = CONVERSATION_HEADER.lower()


@pytest.fixture
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="reader", max_retries=0) as made:
        yield made


def say(client: openai.OpenAI, text: str, conversation: str, **given: Any) -> tuple[str, str, Any]:
    """Return the answer, the conversation that the response names, and what Carrel says beside."""
    headers = {CONVERSATION_HEADER: conversation} if conversation else {}
    messages: list[Any] = [{"role": "user", "content": text}]
    reply = client.chat.completions.with_raw_response.create(
        messages=messages, extra_headers=headers, **{"model": MODEL} | given
    )
    completion = reply.parse()
    extra: Any = completion.model_extra
    answer = completion.choices[0].message.content or ""
    return answer, reply.headers.get(HEADER, ""), extra["carrel"]


def test_a_conversation_goes_on_from_its_last_message(client: openai.OpenAI) -> None:
    answer, name, _ = say(client, QUESTION, "new")
    assert answer == ANSWER and len(name) == 32
    answer, same, beside = say(client, "And who maintains it?", name, model="carrel:xpay")
    assert "Payout Operations" in answer and same == name
    assert beside["conversation_id"] == name and beside["clarification"] is None
    answer, _, _ = say(client, "and who is on call for it?", name, model="carrel")
    assert "payout-rota" in answer


def test_what_is_asked_back_is_the_message_and_the_next_one_the_reply(
    client: openai.OpenAI,
) -> None:
    asked, name, beside = say(client, "Who maintains it?", "new")
    assert asked == "What do you mean by “it”?"
    assert beside["stop_reason"] == "clarification_needed"
    answer, _, after = say(client, "the XPay payout API", name)
    assert "Payout Operations" in answer and after["run_id"] == beside["run_id"]


def test_a_stream_is_the_same(client: openai.OpenAI) -> None:
    texts = []
    name = "new"
    for text in ("Who maintains it?", "the XPay payout API"):
        with client.chat.completions.with_streaming_response.create(
            model=MODEL,
            messages=[{"role": "user", "content": text}],
            stream=True,
            extra_headers={CONVERSATION_HEADER: name},
        ) as reply:
            name = reply.headers[HEADER]
            parts = [chunk.choices[0].delta.content or "" for chunk in reply.parse()]
            texts.append("".join(parts))
    assert texts[0] == "What do you mean by “it”?"
    assert "Payout Operations" in texts[1]


def test_without_the_header_nothing_is_kept_or_asked(client: openai.OpenAI, server: Server) -> None:
    runs = server.runner.session.store.runs
    before = len(runs.newest_conversations(READER, 200))
    answer, name, beside = say(client, "Who maintains it?", "")
    assert name == "" and "clarification" not in beside and "conversation_id" not in beside
    assert beside["stop_reason"] != "clarification_needed" and answer
    assert len(runs.newest_conversations(READER, 200)) == before


def test_it_is_the_callers_own_and_keeps_to_its_collection(client: openai.OpenAI) -> None:
    _, name, _ = say(client, QUESTION, "new")
    theirs = client.with_options(api_key="stranger")
    for given in (name, "0" * 32):
        with pytest.raises(openai.NotFoundError, match="no such conversation of yours"):
            say(theirs, QUESTION, given, model="carrel:tickets")
    with pytest.raises(openai.BadRequestError, match="keeps to its collection"):
        say(client, QUESTION, name, model="carrel:default")
    with pytest.raises(openai.BadRequestError, match="1,64"):
        say(client, QUESTION, "x" * 65)


def test_options_are_text_and_nothing_else() -> None:
    asks = {"question": "Which?", "options": ["![a](http://x/?q=1)", "<img src=x>", "1\n# b"]}
    assert show_clarification({"answer": "", "clarification": asks})["answer"].splitlines() == [
        "Which?",
        "1. !\\[a\\](http://x/?q=1)",
        "2. \\<img src=x\\>",
        "3. 1 # b",
    ]
