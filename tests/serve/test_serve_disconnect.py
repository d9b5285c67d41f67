"""Clients that leave, and a server that stops, while a question is worked on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from commands import HEIGHT
from serving import SECONDS, HeldSession, error_of, eventually, held_services, leave, running
from stub_llm import Connection, stub_llm

from app.session import Session
from core.settings import load_settings
from serve.runs.pool import RETRY_SECONDS
from serve.services import AppState, make_app_state

BODY = {"question": "How long?", "collection": "guide"}


@contextmanager
def streaming(url: str, **more: Any) -> Iterator[Iterator[str]]:
    """Give the lines of a stream; the connection lives as long as this iterator."""
    with (
        httpx.Client(base_url=url, timeout=SECONDS) as client,
        client.stream("POST", "/api/v1/chat", json=BODY | {"stream": True} | more) as response,
    ):
        yield response.iter_lines()


def taken(held: HeldSession) -> bool:
    return held.started.acquire(timeout=SECONDS)


def gave_up(held: HeldSession) -> bool:
    return held.cancelled.acquire(timeout=SECONDS)


def idle(services: AppState) -> bool:
    return services.runner.asks.load == (0, 0)


def test_leaving_in_the_middle_of_a_stream_frees_the_thread(session: Session) -> None:
    services, held = held_services(session, serve_threads=1)
    with running(services) as url:
        for _ in range(20):
            with streaming(url) as lines:
                assert next(lines) == "event: step"
                assert taken(held)
            assert gave_up(held)
            eventually(lambda: idle(services))
        held.released.set()
        assert httpx.post(f"{url}/api/v1/chat", json=BODY).json()["answer"] == "How long?"


def test_leaving_while_waiting_for_a_whole_answer(session: Session) -> None:
    services, held = held_services(session, serve_threads=1)
    with running(services) as url:
        leave(f"{url}/api/v1/chat", BODY, lambda: held.asked)
        assert taken(held) and gave_up(held)
        eventually(lambda: idle(services))


def test_leaving_ends_the_call_of_the_model(library: Path) -> None:
    asking = threading.Event()

    def behave(it: Connection) -> None:
        if asking.is_set():
            it.hang()
        else:
            it.say("a good reply")

    with stub_llm(behave) as stub:
        given = {"data": library, "reasoner": "llm", "llm_url": stub.url, "llm_context": 8192}
        with Session(load_settings(given)[0]) as session:
            assert session.chat is not None
            while stub.closed(0.1):  # the requests of the probe
                pass
            asking.set()
            tried = len(stub.requests)
            services = make_app_state(session, allow_anonymous=True)
            with running(services) as url:
                asked = {"question": HEIGHT}
                leave(f"{url}/api/v1/chat", asked, lambda: len(stub.requests) > tried)
                assert stub.closed()
                eventually(lambda: idle(services))
                runs = httpx.get(f"{url}/api/v1/runs").json()["runs"]
    assert runs[0]["stop_reason"] == "cancelled"  # the newest; the copied library holds others


@pytest.mark.parametrize("stream", [False, True])
def test_leaving_the_line_is_never_run(session: Session, stream: bool) -> None:
    services, held = held_services(session, serve_threads=1)
    with running(services) as url, streaming(url) as lines:
        assert next(lines) == "event: step"
        asked = BODY | {"stream": stream}
        leave(f"{url}/api/v1/chat", asked, lambda: services.runner.asks.load == (1, 1))
        eventually(lambda: services.runner.asks.load == (1, 0))
        assert held.asked == ["How long?"]
        held.released.set()


def test_too_many_are_told_when_to_come_again(session: Session) -> None:
    limits = {"serve_threads": 1, "serve_waiting": 1}
    services, held = held_services(session, **limits)
    with running(services) as url, httpx.Client(base_url=url, timeout=SECONDS) as client:
        with streaming(url) as first:
            assert next(first) == "event: step"
            waiting = threading.Thread(
                target=client.post, args=["/api/v1/chat"], kwargs={"json": BODY}
            )
            waiting.start()
            eventually(lambda: services.runner.asks.load == (1, 1))
            shed = client.post("/api/v1/chat", json=BODY)
            assert shed.status_code == 503
            assert shed.headers["retry-after"] == str(RETRY_SECONDS)
            assert error_of(shed)["code"] == "busy"
            assert client.get("/api/v1/health").status_code == 200
            found = client.post("/api/v1/search", json={"query": "flame"})
            assert found.status_code == 400  # searches have threads of their own
            held.released.set()
            waiting.join(SECONDS)


def test_a_share_that_is_used_up_is_the_callers_own(session: Session) -> None:
    services, held = held_services(session, serve_caller_threads=1, serve_caller_waiting=0)
    with running(services) as url, streaming(url) as lines:
        assert next(lines) == "event: step"
        shed = httpx.post(f"{url}/api/v1/chat", json=BODY)
        assert (shed.status_code, error_of(shed)["code"]) == (429, "too_many_requests")
        held.released.set()


def test_a_stop_lets_a_run_end(session: Session) -> None:
    services, held = held_services(session)
    ended: list[str] = []

    def read(url: str) -> None:
        with streaming(url) as lines:
            ended.extend(lines)

    with running(services) as url:
        reader = threading.Thread(target=read, args=[url])
        reader.start()
        assert taken(held)
        threading.Timer(0.3, held.released.set).start()
    reader.join(SECONDS)
    assert "event: result" in ended


def test_a_stop_cancels_what_does_not_end(session: Session) -> None:
    services, held = held_services(session, serve_stop_seconds=0)
    with running(services) as url:
        reader = threading.Thread(target=lambda: read_all(url))
        reader.start()
        assert taken(held)
    assert gave_up(held)
    reader.join(SECONDS)
    assert idle(services)


def test_whoever_still_waits_at_a_stop_is_told_so(session: Session) -> None:
    services, held = held_services(session, serve_stop_seconds=0)
    told: list[httpx.Response] = []
    with running(services) as url:
        asker = threading.Thread(
            target=lambda: told.append(httpx.post(f"{url}/api/v1/chat", json=BODY, timeout=SECONDS))
        )
        asker.start()
        assert taken(held)
    asker.join(SECONDS)
    assert (told[0].status_code, error_of(told[0])["code"]) == (503, "busy")
    assert "stopping" in error_of(told[0])["rule"] and told[0].headers["retry-after"]


def read_all(url: str) -> None:
    try:
        with streaming(url) as lines:
            list(lines)
    except httpx.HTTPError:
        return  # cut by the server
