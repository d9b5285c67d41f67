"""A small real server for tests of wire formats: one session, a thread per question, uvicorn.

    httpx.get(server.url + "/v1/models", headers=server.headers)  # the fixture `server`

Callers are known by a bearer token: KEYS maps it to who asks. `server.runner` counts the runs that
are at work, and can be told to fail or to wait.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from fastapi import FastAPI
from ingesting import EXAMPLES
from starlette.requests import Request

from app.session import Session
from core.auth import AuthContext
from core.settings import Settings
from core.trace import RunRecord
from models.chat.types import ModelCancelled
from serve.errors import NotAuthenticated
from serve.protocols.langserve import langserve_router
from serve.protocols.openai import openai_router
from serve.protocols.openai_responses import responses_router
from serve.questions import Question, RunEvent

XPAY = EXAMPLES / "xpay"
QUESTION = "What is the default timeout of the XPay payout API?"
TWO_PARTS = f"{QUESTION} And who maintains it?"
UNANSWERABLE = "Which colour has the moon base of the astronauts?"
ANSWER = "The default timeout of the payout API is 120 seconds. [1]"
KEYS = {
    "reader": AuthContext(tenant="default", user="reader"),
    "stranger": AuthContext(tenant="other", user="stranger"),
}
CORPORA = (
    ([XPAY / "docs/payouts.en.md", XPAY / "services.jsonl"], "xpay", "xpay", "default", ""),
    ([EXAMPLES / "library/guide.md"], "default", None, "default", ""),
    ([EXAMPLES / "other_tenant/tickets.jsonl"], "tickets", None, "other", ""),
)


class ThreadRunner:
    """Run each question on a thread of its own."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.at_work = 0
        self.reset()

    def reset(self) -> None:
        """Forget what was asked, and what a test has told it to do."""
        self.given_up = 0
        self.asked: list[tuple[Question, AuthContext]] = []
        self.before: Callable[[Question], None] = lambda question: None
        self.after_step: Callable[[Question], None] = lambda question: None

    async def run(self, question: Question, auth: AuthContext) -> RunRecord:
        raise NotImplementedError("the routes follow runs; they only stream")

    async def stream(self, question: Question, auth: AuthContext) -> AsyncIterator[RunEvent]:
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[Any] = asyncio.Queue()
        gave_up = threading.Event()
        self.asked.append((question, auth))

        def post(event: Any) -> None:
            loop.call_soon_threadsafe(events.put_nowait, event)

        def on_step(step: Any) -> None:
            self.after_step(question)
            if gave_up.is_set():
                self.given_up += 1
                raise ModelCancelled("given up")
            post(RunEvent("step", step.model_dump(mode="json")))

        def work() -> None:
            try:
                self.before(question)
                run = self.session.ask(
                    question.text,
                    auth,
                    question.collection,
                    pipeline=question.pipeline,
                    history=question.history,
                    conversation=question.conversation,
                    clarify=question.clarify,
                    on_step=on_step,
                    on_stream=lambda event: post(RunEvent(event.kind, {"text": event.text})),
                    cancelled=gave_up.is_set,
                )
                post(RunEvent("result", run.result))
            except Exception as error:
                post(error)
            finally:
                loop.call_soon_threadsafe(self._left)

        self.at_work += 1
        threading.Thread(target=work, daemon=True).start()
        try:
            while True:
                event = await events.get()
                if isinstance(event, Exception):
                    raise event
                yield event
                if event.kind == "result":
                    return
        finally:
            gave_up.set()

    def _left(self) -> None:
        self.at_work -= 1


@dataclass
class Server:
    """Where a test server listens, and its runner."""

    url: str
    runner: ThreadRunner
    app: FastAPI

    headers = {"Authorization": "Bearer reader"}


def caller(request: Request) -> AuthContext:
    """Return who a bearer token belongs to."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or key not in KEYS:
        raise NotAuthenticated("a valid key is needed")
    return KEYS[key]


@contextmanager
def serving(session: Session, **changes: object) -> Iterator[Server]:
    """Serve both protocols on a free port of the loopback until the block ends."""
    settings = Settings(**{**session.settings.model_dump(), **changes})
    runner = ThreadRunner(session)

    def collections(auth: AuthContext) -> Sequence[str]:
        return [one.name for one in session.store.catalogue.collections(auth.tenant)]

    def begin(auth: AuthContext, name: str) -> str:
        return session.store.runs.create_conversation(auth.tenant, auth.user, name).id

    app = FastAPI()
    app.include_router(langserve_router(runner, caller, settings))
    app.include_router(openai_router(runner, caller, collections, settings, begin))
    app.include_router(responses_router(runner, caller, collections, settings))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Server(f"http://127.0.0.1:{port}", runner, app)
    finally:
        server.should_exit = True
        thread.join()


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; a test that waits a minute has failed."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)
