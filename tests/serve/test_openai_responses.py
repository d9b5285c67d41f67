"""Responses and embeddings through OpenAI's own client."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import openai
import pytest
from langchain_openai import OpenAIEmbeddings
from protocol_servers import ANSWER, QUESTION, TWO_PARTS, UNANSWERABLE, Server
from serving import Served

from models.chat.types import ModelCancelled

MODEL = "carrel:xpay"


@pytest.fixture
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="reader", max_retries=0) as made:
        yield made


def test_a_response_holds_the_answer_and_its_sources(client: openai.OpenAI) -> None:
    given: Any = {"temperature": 0.3, "instructions": "In verse.", "metadata": {"a": "b"}}
    response = client.responses.create(model=MODEL, input=QUESTION, **given)
    assert (response.output_text, response.status) == (ANSWER, "completed")
    assert (response.object, response.metadata) == ("response", {"a": "b"})
    [message] = response.output
    assert message.type == "message"
    [part] = message.content
    assert part.type == "output_text"
    [found] = part.annotations
    assert found.type == "url_citation" and found.url == "payouts.en.md"
    assert ANSWER[found.start_index : found.end_index] == "[1]"
    assert response.usage is not None and response.usage.total_tokens == 0
    extra: Any = response.model_extra
    assert extra["carrel"]["stop_reason"] == "enough_evidence"


@pytest.mark.parametrize("question", [QUESTION, TWO_PARTS, UNANSWERABLE])
def test_a_stream_ends_with_the_response(client: openai.OpenAI, question: str) -> None:
    whole = client.responses.create(model=MODEL, input=question)
    events = list(client.responses.create(model=MODEL, input=question, stream=True))
    assert [one.sequence_number for one in events] == list(range(len(events)))
    assert [events[0].type, events[-1].type] == ["response.created", "response.completed"]
    deltas = [one.delta for one in events if one.type == "response.output_text.delta"]
    assert "".join(deltas) == whole.output_text
    with client.responses.stream(model=MODEL, input=question) as stream:
        assert stream.get_final_response().output_text == whole.output_text


def test_async_client(server: Server) -> None:
    async def ask() -> str:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="reader") as made:
            stream = await made.responses.create(model=MODEL, input=QUESTION, stream=True)
            events = [one async for one in stream]
            return "".join(e.delta for e in events if e.type == "response.output_text.delta")

    assert asyncio.run(ask()) == ANSWER


def test_items_are_history_and_question(client: openai.OpenAI, server: Server) -> None:
    first = client.responses.create(model=MODEL, input=QUESTION)
    items: list[Any] = [
        {"role": "developer", "content": "Answer in verse."},
        {"role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
        *(one.model_dump() for one in first.output),
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"role": "user", "content": "And who maintains it?"},
    ]
    response = client.responses.create(model=MODEL, input=items)
    assert "Payout Operations" in response.output_text
    question, _ = server.runner.asked[-1]
    assert (question.text, question.history) == ("And who maintains it?", ((QUESTION, ANSWER),))


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"text": {"format": {"type": "json_object"}}}, "text.format"),
        ({"background": True}, "background"),
        ({"input": []}, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input.0.content.0"),
        ({"input": 7}, "input.str"),
        ({"model": "carrel:tickets"}, "model"),
    ],
)
def test_what_no_answer_has_is_refused(server: Server, given: dict[str, Any], param: str) -> None:
    body = {"model": MODEL, "input": QUESTION, **given}
    reply = httpx.post(f"{server.url}/v1/responses", json=body, headers=server.headers)
    assert reply.status_code == (404 if param == "model" else 400)
    assert reply.json()["error"]["param"] == param


def test_a_stream_says_that_it_failed(client: openai.OpenAI, server: Server) -> None:
    def fail(question: Any) -> None:
        raise ModelCancelled("given up")

    server.runner.after_step = fail
    with pytest.raises(openai.APIStatusError):  # before the first event
        client.responses.create(model=MODEL, input=QUESTION, stream=True)
    steps: list[Any] = []

    def fail_later(question: Any) -> None:
        steps.append(question)
        if len(steps) > 1:
            raise ModelCancelled("given up")

    server.runner.after_step = fail_later
    *_, last = client.responses.create(model=MODEL, input=QUESTION, stream=True)
    assert last.type == "response.failed" and last.response.status == "failed"
    assert last.response.error is not None and last.response.error.message


@pytest.fixture
def embedding(served: Served) -> Iterator[openai.OpenAI]:
    key = served.headers["reader"]["Authorization"].removeprefix("Bearer ")
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key=key, max_retries=0) as made:
        yield made


def test_embeddings_are_those_of_the_search(embedding: openai.OpenAI, served: Served) -> None:
    embedder = served.services.session.embedder
    assert embedder is not None
    texts = ["A candle burns.", "Чайник закипает.", "A candle burns."]
    made = embedding.embeddings.create(model="carrel:guide", input=texts)  # sent as base64
    rows = np.array([one.embedding for one in made.data])
    assert np.allclose(rows, embedder.embed_documents(texts), atol=1e-5)
    assert [one.index for one in made.data] == [0, 1, 2] and made.usage.total_tokens == 0
    query: Any = {"input_type": "query"}
    [one] = embedding.embeddings.create(
        model="carrel", input="candle", encoding_format="float", extra_body=query
    ).data
    assert np.allclose(one.embedding, embedder.embed_query("candle"), atol=1e-5)
    size = embedder.dimension
    body = {"model": "carrel:guide", "input": "x", "dimensions": size}
    with served.client("reader") as client:
        plain = client.post("/v1/embeddings", json={**body, "encoding_format": "base64"})
    assert len(base64.b64decode(plain.json()["data"][0]["embedding"])) == 4 * size


def test_langchain_embeds_by_it(served: Served) -> None:
    key: Any = served.headers["reader"]["Authorization"].removeprefix("Bearer ")
    url = f"{served.url}/v1"
    with httpx.Client() as client:
        given: Any = {"base_url": url, "api_key": key, "http_client": client}
        made = OpenAIEmbeddings(model="carrel:guide", check_embedding_ctx_length=False, **given)
        found = made.embed_query("candle")
    assert abs(np.linalg.norm(found) - 1) < 1e-3


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"input": []}, "1 to 128 texts, not 0"),
        ({"input": ["x"] * 129}, "1 to 128 texts, not 129"),
        ({"input": [1, 2, 3]}, "check_embedding_ctx_length=False"),
        ({"input": [[1], [2]]}, "check_embedding_ctx_length=False"),
        ({"input": ["a", " "]}, "this one has 1"),
        ({"input": "x" * 20_001}, "this one has 20001"),
        ({"dimensions": 8}, "numbers, not 8"),
        ({"encoding_format": "hex"}, "encoding_format"),
        ({"model": "carrel:closed"}, "must exist"),
        ({"model": "text-embedding-3-small"}, "must exist"),
    ],
)
def test_bad_embeddings_are_refused(served: Served, given: dict[str, Any], says: str) -> None:
    body = {"model": "carrel:guide", "input": "candle", **given}
    with served.client("reader") as client:
        reply = client.post("/v1/embeddings", json=body)
    assert reply.status_code == (404 if "model" in given else 400)
    assert says in reply.json()["error"]["message"]
