"""What LangServe's routes do with requests no client would send, and with lost clients."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langserve.lzstring import LZString
from protocol_servers import ANSWER, QUESTION, Server, until
from random_json import any_json
from serving import leave
from tiers import examples

from core.errors import (
    CallerError,
    CarrelError,
    ModelError,
    OperatorError,
    StorageUnavailableError,
)
from serve.errors import Busy
from serve.protocols.langserve_schemas import config_of, decompress

ASKED = {"question": QUESTION, "collection": "xpay"}
STREAMS = ("stream", "stream_log", "stream_events")


@pytest.fixture
def http(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{server.url}/agent/", headers=server.headers, timeout=60) as made:
        yield made


@given(st.text(), st.integers(0, 3))
def test_a_hash_is_undone(text: str, spoiled: int) -> None:
    packed = LZString.compressToEncodedURIComponent(text)
    if text.isascii() or all(ord(character) < 0x10000 for character in text):
        assert decompress(packed, 10_000) == text
    with suppress(ValueError):
        decompress(packed[spoiled:], 10_000)


def test_a_small_hash_cannot_grow_without_bound() -> None:
    packed = LZString.compressToEncodedURIComponent("x" * 100_000)
    assert len(packed) < 1000
    with pytest.raises(CallerError, match="Invalid config hash"):
        config_of(packed, 20_000)


def packed(config: object) -> str:
    return LZString.compressToEncodedURIComponent(json.dumps(config))


@pytest.mark.parametrize("bad", ["x", "%00", "ж", "N4Ig", packed([1]), packed("a"), packed(None)])
def test_an_invalid_hash(http: httpx.Client, bad: str) -> None:
    for reply in (
        http.post(f"c/{bad}/invoke", json={"input": ASKED}),
        http.get(f"c/{bad}/input_schema"),
    ):
        assert (reply.status_code, reply.json()["detail"][:19]) == (400, "Invalid config hash")


def test_a_config_of_wrong_types(http: httpx.Client) -> None:
    config = {"configurable": {"pipeline": "fastest", "collection": 7}}
    for reply in (
        http.post(f"c/{packed(config)}/invoke", json={"input": ASKED}),
        http.post("invoke", json={"input": ASKED, "config": config}),
    ):
        assert reply.status_code == 422
        places = [one["loc"][-1] for one in reply.json()["detail"]]
        assert places == ["collection", "pipeline"]


BODIES: list[tuple[bytes, int]] = [
    (b"", 422),
    (b"{", 422),
    (b"\xff\xfe", 422),
    (b"[" * 100_000, 400),
    (b"[]", 422),
    (b"null", 422),
    (b"{}", 422),
    (b'{"input": null}', 422),
    (b'{"input": "What?"}', 422),
    (b'{"input": {}}', 422),
    (b'{"input": {"question": 7}}', 422),
    (b'{"input": {"question": NaN}}', 422),
    (b'{"input": {"question": "\\ud800"}}', 400),
    (b'{"input": {"question": "What?", "colection": "xpay"}}', 422),
    (b'{"input": {"question": "What?", "\\ud800": 1}}', 422),
    (b'{"input": {"question": "What?", "messages": "none"}}', 422),
    (b'{"input": {"question": "What?", "messages": [{"type": "human"}]}}', 422),
    (b'{"input": {"question": "What?"}, "config": []}', 422),
    (b'{"input": {"question": "What?"}, "kwargs": 1}', 422),
    (b'{"input": {"question": "What?"}, "kwargs": ' + b'{"a":' * 900 + b"1" + b"}" * 901, 422),
    (b'{"input": {"question": ""}}', 400),
    (b'{"input": {"question": "?!"}}', 400),
    (b'{"input": {"question": "What?", "collection": "../xpay"}}', 400),
    (b'{"input": {"question": "What?", "collection": "none"}}', 400),
]


@pytest.mark.parametrize(("body", "status"), BODIES)
@pytest.mark.parametrize("route", ["invoke", *STREAMS])
def test_a_bad_body_is_explained(http: httpx.Client, route: str, body: bytes, status: int) -> None:
    reply = http.post(route, content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == status, reply.text
    assert reply.json()["detail"]
    assert len(reply.content) < 2000


@pytest.mark.parametrize("route", ["invoke", *STREAMS])
def test_halves_of_characters_are_replaced(http: httpx.Client, route: str) -> None:
    said = json.dumps([{"type": "human", "content": "\ud800"}, {"role": "ai", "content": "\udc00"}])
    asked = f'{{"question": "{QUESTION} \\ud800", "collection": "xpay", "messages": {said}}}'
    headers = {"Content-Type": "application/json"}
    reply = http.post(route, content=f'{{"input": {asked}}}', headers=headers)
    assert reply.status_code == 200
    assert "120 seconds" in reply.text and "event: error" not in reply.text


def test_a_huge_question_is_refused_without_being_repeated(http: httpx.Client) -> None:
    for question in ("what " * 100_000, ["what"] * 100_000):
        reply = http.post("invoke", json={"input": {"question": question}})
        assert reply.status_code in (400, 422)
        assert len(reply.content) < 1000


def test_batches_that_cannot_be(http: httpx.Client) -> None:
    one = {"configurable": {"collection": "xpay"}}
    for body, status in (
        ({"inputs": ASKED}, 422),
        ({"inputs": [ASKED] * 65}, 400),
        ({"inputs": [ASKED], "config": [one, one]}, 400),
        ({"inputs": [{"question": ""}, {"question": ""}]}, 400),
    ):
        reply = http.post("batch", json=body)
        assert (reply.status_code, "detail" in reply.json()) == (status, True)
    assert http.post("batch", json={"inputs": []}).json()["output"] == []
    mixed = {"inputs": [{"question": QUESTION}, ASKED], "config": [one, {}]}
    answers = [output["answer"] for output in http.post("batch", json=mixed).json()["output"]]
    assert answers == [ANSWER, ANSWER]


def test_unknown_keys_beside_the_input_are_ignored(http: httpx.Client) -> None:
    reply = http.post("invoke", json={"input": ASKED, "diff": True, "config": None, "x": 1})
    assert reply.json()["output"]["answer"] == ANSWER


def test_schemas(http: httpx.Client) -> None:
    given_, output, config = (
        http.get(f"{name}_schema").json() for name in ("input", "output", "config")
    )
    assert set(given_["properties"]) == {"question", "collection", "messages"}
    assert given_["required"] == ["question"]
    optional = {"clarification", "cached", "conflicts"}
    assert set(output["required"]) == set(output["properties"]) - optional
    assert set(config["$defs"]["Configurable"]["properties"]) == {"collection", "pipeline"}
    assert http.get(f"c/{packed({})}/config_schema").json() == config


@pytest.mark.parametrize(
    "method_path", ["GET input_schema", "GET c/Q/config_schema", "POST invoke", "POST c/Q/stream"]
)
def test_no_route_is_open(server: Server, method_path: str) -> None:
    method, path = method_path.split()
    reply = httpx.request(method, f"{server.url}/agent/{path}", json={"input": ASKED})
    assert (reply.status_code, reply.headers["www-authenticate"]) == (401, "Bearer")


ERRORS: list[tuple[Exception, int, str]] = [
    (Busy("too many wait", retry_after=2), 503, "too many wait"),
    (Busy("too many wait", retry_after=2, of_caller=True), 429, "too many wait"),
    (ModelError("the model is gone", value="m"), 503, "the model is gone"),
    (OperatorError("the disk is full", value="/secret/place"), 503, "the disk is full"),
    (StorageUnavailableError("database is locked"), 503, "the catalogue is busy"),
    (CarrelError("odd"), 500, "odd"),
    (ValueError("/secret/place"), 500, "Internal Server Error"),
]


@pytest.mark.parametrize(("error", "status", "message"), ERRORS)
@pytest.mark.parametrize("route", ["invoke", *STREAMS])
def test_errors_have_a_status_and_no_secrets(
    http: httpx.Client, server: Server, route: str, error: Exception, status: int, message: str
) -> None:
    def fail(question: Any) -> None:
        raise error

    server.runner.before = fail
    reply = http.post(route, json={"input": ASKED})
    assert reply.status_code == status
    assert reply.json()["detail"].startswith(message)
    assert "secret" not in reply.text
    assert ("retry-after" in reply.headers) == isinstance(error, Busy)


@pytest.mark.parametrize("route", STREAMS)
def test_an_error_in_the_middle_ends_a_stream(
    http: httpx.Client, server: Server, route: str
) -> None:
    steps = iter(range(100))

    def fail(question: Any) -> None:
        if next(steps) == 2:
            raise ModelError("the model is gone", value="m")

    server.runner.after_step = fail
    reply = http.post(route, json={"input": ASKED})
    assert reply.status_code == 200
    *_, name, data = [line for line in reply.text.split("\r\n") if line]
    assert (name, json.loads(data.removeprefix("data: "))) == (
        "event: error",
        {"status_code": 503, "message": "the model is gone: m."},
    )


def test_the_wire_format_of_a_stream(http: httpx.Client) -> None:
    reply = http.post("stream", json={"input": ASKED})
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = [block.split("\r\n") for block in reply.text.split("\r\n\r\n") if block]
    assert [event[0] for event in events] == [
        *("event: metadata", "event: data", "event: data", "event: end")
    ]
    assert set(json.loads(events[0][1].removeprefix("data: "))) == {"run_id"}


@pytest.mark.parametrize("route", ["invoke", "batch", *STREAMS])
def test_a_client_that_leaves_frees_its_run(http: httpx.Client, server: Server, route: str) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(question: Any) -> None:
        begun.set()
        assert go_on.wait(60)

    server.runner.after_step = wait
    body = {"inputs": [ASKED] * 3} if route == "batch" else {"input": ASKED}

    leave(f"{server.url}/agent/{route}", body, begun.is_set, server.headers)
    go_on.set()
    until(lambda: server.runner.at_work == 0)
    assert server.runner.given_up == len(server.runner.asked)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(any_json("question", "collection", "messages", "content", "type", "x"))
def test_no_json_is_an_internal_error(http: httpx.Client, value: Any) -> None:
    for body in (value, {"input": value}, {"input": ASKED, "config": value}):
        content = json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        reply = http.post("invoke", content=content, headers=headers)
        assert reply.status_code < 500, reply.text
        assert isinstance(reply.json(), dict)
