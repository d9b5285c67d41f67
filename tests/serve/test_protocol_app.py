"""Both protocols within the real application: its keys, its limits, its threads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from langserve import RemoteRunnable
from serving import SECONDS, Served, eventually, held_services, running

from app.session import Session
from serve.app import make_api, protocol_routers
from serve.protocols.langserve import langserve_router
from serve.protocols.openai import openai_router
from serve.services import caller

QUESTION = "What is the maximum height of the candle flame?"
MESSAGES: list[Any] = [{"role": "user", "content": QUESTION}]


def key_of(served: Served, kind: str) -> str:
    return served.headers[kind]["Authorization"].removeprefix("Bearer ")


def test_langserves_client(served: Served) -> None:
    agent: Any = RemoteRunnable(
        f"{served.url}/agent", headers=served.headers["reader"], timeout=SECONDS
    )
    asked = {"question": QUESTION, "collection": "guide"}
    assert "42 mm" in agent.invoke(asked)["answer"]
    *_, last = agent.stream(asked)
    assert last["stop_reason"] == "enough_evidence"
    asyncio.run(agent.async_client.aclose())


def test_openais_client(served: Served) -> None:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key=key_of(served, "reader")) as client:
        ids = {model.id for model in client.models.list()}
        assert ids >= {"carrel", "carrel:guide"} and "carrel:closed" not in ids
        whole = client.chat.completions.create(model="carrel:guide", messages=MESSAGES)
        assert "42 mm" in (whole.choices[0].message.content or "")
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="carrel:closed", messages=MESSAGES)
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key=key_of(served, "editor")) as client:
        assert "carrel:closed" in {model.id for model in client.models.list()}


@pytest.mark.parametrize("path", ["/agent/invoke", "/v1/chat/completions"])
def test_the_limits_of_the_server_hold(served: Served, path: str) -> None:
    size = served.services.settings.serve.body_bytes + 1

    def pieces() -> Iterator[bytes]:  # so that no header says how many will come
        yield b'{"input": "'
        yield b"x" * size

    with served.client() as client:
        reply = client.post(path, content=pieces(), headers={"Content-Type": "application/json"})
        assert reply.status_code == 413
        assert ("error" if path.startswith("/v1") else "detail") in reply.json()


@pytest.mark.parametrize("stream", [False, True])
def test_a_full_server_says_when_to_come_back(session: Session, stream: bool) -> None:
    services, held = held_services(session, serve_threads=1, serve_waiting=0)
    runner, settings = services.runner, services.settings
    routers = (
        langserve_router(runner, caller, settings),
        openai_router(runner, caller, lambda auth: ["default"], settings, lambda auth, name: ""),
    )
    with (
        running(services, routers=routers) as url,
        httpx.Client(base_url=url, timeout=SECONDS) as client,
    ):
        body = {"model": "carrel", "messages": MESSAGES, "stream": True}
        with client.stream("POST", "/v1/chat/completions", json=body):
            assert held.started.acquire(timeout=SECONDS)
            shed = client.post("/v1/chat/completions", json={**body, "stream": stream})
            assert shed.status_code in (429, 503) and "retry-after" in shed.headers
            kind = "stream" if stream else "invoke"
            shed = client.post(f"/agent/{kind}", json={"input": {"question": QUESTION}})
            assert shed.status_code in (429, 503) and "retry-after" in shed.headers
        assert held.cancelled.acquire(timeout=SECONDS)  # the client left, and its run stopped
        eventually(lambda: services.runner.asks.load[0] == 0)


def test_every_route_is_described(served: Served) -> None:
    document = make_api(served.services, protocol_routers(served.services)).openapi()
    assert len(document["paths"]) == 2 * 8 + 5
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert {"200", "401", "429", "503"} <= set(operation["responses"])
            named = {one["name"] for one in operation.get("parameters", []) if one["in"] == "path"}
            assert all(f"{{{name}}}" in path for name in named)
            assert path.count("{") == len(named)
