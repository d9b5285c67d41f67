"""What the OpenAI routes do with requests that cannot be answered, and with lost clients."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from protocol_servers import ANSWER, QUESTION, Server, until
from random_json import any_json
from serving import leave
from tiers import examples

from core.errors import ModelError
from serve.errors import Busy

MODEL = "carrel:xpay"
ASKED = {"role": "user", "content": QUESTION}
PATH = "chat/completions"


@pytest.fixture
def http(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{server.url}/v1/", headers=server.headers, timeout=60) as made:
        yield made


def body(**changes: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [ASKED], **changes}


def error_of(reply: httpx.Response) -> dict[str, Any]:
    found = reply.json()
    assert set(found) == {"error"}
    assert set(found["error"]) == {"message", "type", "param", "code"}
    assert isinstance(found["error"]["message"], str) and found["error"]["message"]
    assert len(reply.content) < 2000
    return dict(found["error"])


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
FUNCTION = {"type": "function", "function": {"name": "f"}}
BAD: list[tuple[dict[str, Any], str]] = [
    (body(model=None), "model"),
    (body(model=7), "model"),
    ({"messages": [ASKED]}, "model"),
    ({"model": MODEL}, "messages"),
    (body(messages=[]), "messages"),
    (body(messages=QUESTION), "messages"),
    (body(messages=[QUESTION]), "messages.0"),
    (body(messages=[{"role": "judge", "content": "x"}]), "messages.0.role"),
    (body(messages=[{"role": "user", "content": 7}]), "messages.0.content.str"),
    (body(messages=[{"role": "system", "content": "x"}]), "messages"),
    (body(messages=[{"role": "assistant", "content": "x"}]), "messages"),
    (body(messages=[{"role": "user", "content": [IMAGE]}]), "messages.0.content.0"),
    (body(messages=[{"role": "user", "content": [{"type": "text"}]}]), "messages.0.content.0"),
    (body(stream="yes"), "stream"),
    (body(stream_options=[]), "stream_options"),
    (body(n=0), "n"),
    (body(temperature="hot"), "temperature"),
    (body(tools=[FUNCTION]), "tools"),
    (body(functions=[{"name": "f"}]), "functions"),
    (body(tool_choice="required"), "tool_choice"),
    (body(tool_choice={"type": "function"}), "tool_choice"),
    (body(response_format={"type": "json_object"}), "response_format"),
    (body(carrel={"sources": "always"}), "carrel.sources"),
    (body(carrel={"tenant": "other"}), "carrel.tenant"),
]


@pytest.mark.parametrize(("wrong", "param"), BAD)
@pytest.mark.parametrize("stream", [False, True])
def test_a_bad_request_names_the_field(
    http: httpx.Client, server: Server, wrong: dict[str, Any], param: str, stream: bool
) -> None:
    reply = http.post(PATH, json={"stream": stream, **wrong})
    assert reply.status_code == 400, reply.text
    error = error_of(reply)
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert server.runner.asked == []


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"\xff", b"null", b"[]", b"[" * 100_000, b'{"model": "\\ud800"}'),
        b'{"model": "carrel:xpay", "messages": [{"role": "user", "content": "?"}]}',
        b'{"model": "carrel:xpay", "messages": [{"role": "user", "content": null}]}',
        b'{"model": "carrel:xpay", "messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"model": "carrel:xpay", "messages": [{"role": "user", "content": []}]}',
    ],
)
@pytest.mark.parametrize("stream", [b"", b', "stream": true}'])
def test_a_body_that_asks_nothing(http: httpx.Client, content: bytes, stream: bytes) -> None:
    if stream and content.endswith(b"}"):
        content = content[:-1] + stream
    reply = http.post(PATH, content=content, headers={"Content-Type": "application/json"})
    assert reply.status_code == 400, reply.text
    assert error_of(reply)["type"] == "invalid_request_error"


def test_a_huge_text_is_refused_without_being_repeated(http: httpx.Client) -> None:
    reply = http.post(PATH, json=body(messages=[{"role": "user", "content": "what " * 100_000}]))
    assert reply.status_code == 400
    error_of(reply)


def test_what_steers_sampling_is_ignored(http: httpx.Client) -> None:
    ignored: dict[str, Any] = {
        **{"n": 3, "temperature": 2, "top_p": 0.1, "max_tokens": 1, "stop": ["120"], "seed": 1},
        **{"user": "admin", "tools": [], "tool_choice": "auto", "logit_bias": {}, "top_k": 4},
        **{"response_format": {"type": "text"}, "metadata": {"tenant": "other"}},
    }
    reply = http.post(PATH, json=body(**ignored))
    assert [one["message"]["content"] for one in reply.json()["choices"]] == [ANSWER]


def test_no_field_says_who_asks(http: httpx.Client, server: Server) -> None:
    theirs = {"user": "stranger", "tenant": "other", "roles": ["admin"]}
    headers = {"X-OpenWebUI-User-Id": "stranger", "X-OpenWebUI-User-Role": "admin"}
    assert http.post(PATH, json=body(**theirs), headers=headers).status_code == 200
    [(_, auth)] = server.runner.asked
    assert (auth.tenant, auth.user, auth.roles) == ("default", "reader", frozenset())


def test_a_missing_route_of_the_prefix(http: httpx.Client) -> None:
    assert http.post("embeddings", json={}).status_code == 404


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Busy("too many wait", retry_after=2, of_caller=True), openai.RateLimitError),
        (Busy("too many wait", retry_after=2), openai.InternalServerError),
        (ModelError("the model is gone"), openai.InternalServerError),
        (ValueError("/secret/place"), openai.InternalServerError),
    ],
)
def test_errors_reach_the_client(
    http: httpx.Client, server: Server, error: Exception, kind: type[Exception], stream: bool
) -> None:
    def fail(question: Any) -> None:
        raise error

    server.runner.before = fail
    reply = http.post(PATH, json=body(stream=stream))
    assert "secret" not in reply.text
    error_of(reply)
    with (
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="reader", max_retries=0) as client,
        pytest.raises(kind),
    ):
        client.chat.completions.create(**body(stream=stream))


def test_an_error_in_the_middle_reaches_the_client(http: httpx.Client, server: Server) -> None:
    steps = iter(range(100))

    def fail(question: Any) -> None:
        if next(steps) == 2:
            raise ModelError("the model is gone")

    server.runner.after_step = fail
    with (
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="reader", max_retries=0) as client,
        pytest.raises(openai.APIError, match="the model is gone"),
    ):
        list(client.chat.completions.create(**body(stream=True)))


def test_the_wire_format_of_a_stream(http: httpx.Client) -> None:
    reply = http.post(PATH, json=body(stream=True, stream_options={"include_usage": True}))
    assert reply.headers["content-type"].startswith("text/event-stream")
    lines = [line.removeprefix("data: ") for line in reply.text.splitlines() if line]
    assert lines[-1] == "[DONE]"
    *chunks, usage = [json.loads(line) for line in lines[:-1]]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, "stop"]
    assert usage["choices"] == [] and usage["usage"]["total_tokens"] == 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_frees_its_run(
    http: httpx.Client, server: Server, stream: bool
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(question: Any) -> None:
        begun.set()
        assert go_on.wait(60)

    server.runner.after_step = wait

    leave(f"{server.url}/v1/{PATH}", body(stream=stream), begun.is_set, server.headers)
    go_on.set()
    until(lambda: server.runner.at_work == 0)
    assert server.runner.given_up == len(server.runner.asked)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    any_json("role", "content", "type", "text", "user", "stream"),
    st.sampled_from(["messages", "model", "stream_options", "carrel", "tools", "metadata"]),
)
def test_no_json_is_an_internal_error(http: httpx.Client, value: Any, name: str) -> None:
    for content in (value, body(**{name: value})):
        reply = http.post(
            PATH,
            content=json.dumps(content).encode(),
            headers={"Content-Type": "application/json"},
        )
        assert reply.status_code < 500, reply.text
        if reply.status_code != 200:
            error_of(reply)
