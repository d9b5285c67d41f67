"""A real server on a loopback port, in a thread of this process, and callers of every kind.

    with running(services) as url: ...      # uvicorn over `make_app(services)`

`services_over(session, …)` returns services whose questions are answered by `ask`, to hold a run
for as long as a test wants.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from app.session import Session
from core.settings import Settings
from core.trace import RunRecord, Step
from models.chat.types import ModelCancelled
from serve.access.network import address_of, listening_socket
from serve.app import make_app
from serve.runs.runner import SessionRunner
from serve.server import make_server
from serve.services import AppState, make_app_state
from serve.telemetry.metrics import Metrics
from stores.store import Store

HOST = "127.0.0.1"
SECONDS = 60


@contextmanager
def running(services: AppState, **options: Any) -> Iterator[str]:
    """Serve until the block ends; give the address."""
    ready = threading.Event()
    bound = listening_socket(HOST, 0)
    server = make_server(
        make_app(services, host=HOST, **options), services.settings, ready.set, services.runner.stop
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        assert ready.wait(SECONDS)
        yield address_of(bound, HOST)
    finally:
        server.should_exit = True
        thread.join(SECONDS)
        bound.close()
        assert not thread.is_alive()


@dataclass
class HeldSession:
    """Stand for a session whose runs go on until they are released or cancelled."""

    settings: Settings
    store: Store
    chat: None = None
    started: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    cancelled: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    released: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        """Give what a session takes from its store."""
        return getattr(self.__dict__["store"], name)

    def ask(self, question: str, auth: Any, collection: str, **given: Any) -> RunRecord:
        self.asked.append(question)
        given["on_step"](Step(node="understand"))
        self.started.release()
        while not self.released.wait(0.005):
            if given["cancelled"]():
                self.cancelled.release()
                raise ModelCancelled("given up")
        return record(question)


def record(question: str) -> RunRecord:
    return RunRecord(
        run_id="0" * 12,
        tenant="acme",
        user="u",
        collection="main",
        question=question,
        pipeline="auto",
        created_at="",
        index_version=0,
        result={"answer": question, "refused": False},
        trail=[],
    )


def held_services(session: Session, **changes: Any) -> tuple[AppState, HeldSession]:
    """Return services over the session's data whose questions are held."""
    settings = session.settings.model_copy(update=changes)
    held = HeldSession(settings, session.store)
    runner = SessionRunner(held, settings)  # type: ignore[arg-type]
    services = make_app_state(session, allow_anonymous=True)
    services = replace(services, settings=settings, runner=runner, metrics=Metrics(runner))
    return services, held


@dataclass(frozen=True)
class Served:
    """Hold a running server and the header of each kind of caller."""

    url: str
    services: AppState
    headers: dict[str, dict[str, str]]

    def client(self, kind: str = "reader") -> httpx.Client:
        headers = self.headers[kind]
        # No certificates: reading them takes longer than most requests here.
        return httpx.Client(base_url=self.url, headers=headers, timeout=SECONDS, verify=False)


def error_of(response: httpx.Response) -> dict[str, Any]:
    """Return the error of a response after checking that it has the one shape of all."""
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert set(body) == {"error"}
    error: dict[str, Any] = body["error"]
    assert set(error) == {"id", "code", "rule", "value", "hint", "message"}
    assert error["id"] == response.headers["x-request-id"]
    assert "Traceback" not in response.text
    return error


def events_of(response: httpx.Response) -> list[tuple[str, Any]]:
    """Read a whole stream of server-sent events."""
    found = []
    for block in response.read().decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


def eventually(true: Callable[[], bool]) -> None:
    """Wait until something is true."""
    pause = threading.Event()
    for _ in range(SECONDS * 100):
        if true():
            return
        pause.wait(0.01)
    pytest.fail("it never came true")


def leave(
    url: str, body: dict[str, Any], when: Callable[[], Any], headers: dict[str, str] | None = None
) -> None:
    """Post a body and hang up as soon as something is true, with the answer unread."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=SECONDS)
    with contextlib.closing(connection):
        given = {"Content-Type": "application/json", **(headers or {})}
        connection.request("POST", parts.path, json.dumps(body), given)
        eventually(when)
