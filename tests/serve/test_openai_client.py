"""The agent through OpenAI's own client and the llm command."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from protocol_servers import (
    ANSWER,
    QUESTION,
    TWO_PARTS,
    UNANSWERABLE,
    Server,
    serving,
)

MODEL = "carrel:xpay"
ASKED: list[Any] = [{"role": "user", "content": QUESTION}]


@pytest.fixture
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="reader", max_retries=0) as made:
        yield made


def test_models_are_the_callers_collections(client: openai.OpenAI, server: Server) -> None:
    assert [model.id for model in client.models.list()] == ["carrel", "carrel:default", MODEL]
    assert client.models.retrieve(MODEL).owned_by == "carrel"
    with client.with_options(api_key="stranger") as theirs:
        assert [model.id for model in theirs.models.list()] == ["carrel", "carrel:tickets"]


def test_a_completion_holds_the_answer_and_its_sources(client: openai.OpenAI) -> None:
    completion = client.chat.completions.create(model=MODEL, messages=ASKED, temperature=0.3, n=2)
    [choice] = completion.choices
    assert (choice.message.content, choice.finish_reason) == (ANSWER, "stop")
    assert completion.model == MODEL and completion.object == "chat.completion"
    [annotation] = choice.message.annotations or []
    found = annotation.url_citation
    assert ANSWER[found.start_index : found.end_index] == "[1]"
    extra: Any = completion.model_extra
    assert extra["citations"] == ["payouts.en.md"] == [found.url]
    assert extra["search_results"][0]["snippet"] == ANSWER[:-4]
    assert extra["carrel"]["stop_reason"] == "enough_evidence"
    assert completion.usage is not None and completion.usage.total_tokens == 0  # no model decided


def test_every_mark_is_annotated(client: openai.OpenAI) -> None:
    completion = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": TWO_PARTS}]
    )
    message = completion.choices[0].message
    content = message.content or ""
    cited = [one.url_citation for one in message.annotations or []]
    assert [content[one.start_index : one.end_index] for one in cited] == ["[1]", "[2]"]
    assert len({one.url for one in cited}) == 2


@pytest.mark.parametrize("question", [QUESTION, TWO_PARTS, UNANSWERABLE])
def test_a_stream_says_the_same(client: openai.OpenAI, question: str) -> None:
    messages: list[Any] = [{"role": "user", "content": question}]
    whole = client.chat.completions.create(model=MODEL, messages=messages)
    chunks = list(client.chat.completions.create(model=MODEL, messages=messages, stream=True))
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == whole.choices[0].message.content
    last: Any = chunks[-1]
    assert last.choices[0].finish_reason == "stop"
    annotations = whole.choices[0].message.annotations or []
    assert last.choices[0].delta.annotations == [one.model_dump() for one in annotations]
    assert last.search_results == (whole.model_extra or {})["search_results"]
    assert len({chunk.id for chunk in chunks}) == 1
    assert all("usage" not in chunk.model_fields_set for chunk in chunks)


def test_usage_ends_a_stream_that_asks_for_it(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model=MODEL, messages=ASKED, stream=True, stream_options={"include_usage": True}
    )
    *chunks, last = list(stream)
    assert last.usage is not None and last.choices == []
    assert all(chunk.usage is None and chunk.choices for chunk in chunks)


def test_async_client(server: Server) -> None:
    async def ask() -> tuple[str | None, str]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="reader") as client:
            whole = await client.chat.completions.create(model=MODEL, messages=ASKED)
            stream = await client.chat.completions.create(model=MODEL, messages=ASKED, stream=True)
            pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
            return whole.choices[0].message.content, "".join(pieces)

    assert asyncio.run(ask()) == (ANSWER, ANSWER)


def test_messages_are_history_and_question(client: openai.OpenAI, server: Server) -> None:
    messages: list[Any] = [
        {"role": "system", "content": "Answer in verse, and search the collection secret."},
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": f"{ANSWER}\n\n---\n- [1] Payouts · docs/payouts.en.md"},
        {"role": "user", "content": [{"type": "text", "text": "And who maintains it?"}]},
    ]
    completion = client.chat.completions.create(model=MODEL, messages=messages)
    assert "Payout Operations" in (completion.choices[0].message.content or "")
    [(question, _)] = server.runner.asked
    assert (question.text, question.history) == ("And who maintains it?", ((QUESTION, ANSWER),))


def test_sources_can_end_the_text(client: openai.OpenAI) -> None:
    wanted = {"carrel": {"sources": True}}
    completion = client.chat.completions.create(model=MODEL, messages=ASKED, extra_body=wanted)
    text = completion.choices[0].message.content or ""
    assert text.startswith(f"{ANSWER}\n\n---\n- [1] ")
    assert "payouts.en.md" in text
    stream = client.chat.completions.create(
        model=MODEL, messages=ASKED, stream=True, extra_body=wanted
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == text


def test_a_setting_ends_every_text_with_sources(server: Server) -> None:
    with (
        serving(server.runner.session, openai_sources=True) as other,
        openai.OpenAI(base_url=f"{other.url}/v1", api_key="reader") as client,
    ):
        completion = client.chat.completions.create(model=MODEL, messages=ASKED)
        assert "\n\n---\n- [1] " in (completion.choices[0].message.content or "")


def test_open_webui_gets_steps_and_passages(client: openai.OpenAI) -> None:
    plain = client.chat.completions.create(model=MODEL, messages=ASKED, stream=True)
    assert not any("event" in (chunk.model_extra or {}) for chunk in plain)
    for asked in (
        {"extra_headers": {"X-Carrel-Events": "open-webui"}},
        {"extra_body": {"carrel": {"events": "open-webui"}}},
    ):
        kind: Any = asked
        stream = client.chat.completions.create(model=MODEL, messages=ASKED, stream=True, **kind)
        chunks: list[Any] = list(stream)
        events = [chunk.event for chunk in chunks if "event" in (chunk.model_extra or {})]
        assert events[0]["data"]["description"].startswith("understand")
        assert events[-1] == {
            "type": "status",
            "data": {"description": "enough_evidence", "done": True},
        }
        [source] = [event["data"] for event in events if event["type"] == "source"]
        assert ANSWER[:-4] in source["document"][0]
        assert chunks[-1].choices[0].delta.model_extra == {}  # no second list of the same


def test_a_model_that_is_not_there(client: openai.OpenAI) -> None:
    for model in ("gpt-5", "carrel:tickets", "carrel:", "CARREL", "carrel:xpay/../tickets"):
        with pytest.raises(openai.NotFoundError) as caught:
            client.chat.completions.create(model=model, messages=ASKED)
        assert caught.value.code == "model_not_found" and caught.value.param == "model"
        assert "tickets" not in caught.value.message
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("carrel:tickets")


def test_a_wrong_key(client: openai.OpenAI) -> None:
    with client.with_options(api_key="wrong") as wrong:
        with pytest.raises(openai.AuthenticationError) as caught:
            wrong.chat.completions.create(model=MODEL, messages=ASKED)
        assert caught.value.code == "invalid_api_key"
        with pytest.raises(openai.AuthenticationError):
            wrong.models.list()


@pytest.mark.parametrize("options", [(), ("--no-stream",)])
def test_llm_command(server: Server, tmp_path: Path, options: tuple[str, ...]) -> None:
    command = (sys.executable, "-m", "llm", "openai", "endpoint", f"{server.url}/v1", QUESTION)
    ran = subprocess.run(
        [*command, "-m", MODEL, "--key", "reader", *options],
        env={**os.environ, "LLM_USER_PATH": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.stdout.strip() == ANSWER, ran.stderr
