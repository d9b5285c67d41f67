"""Runs followed by a client: until it leaves, and as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar, cast

from fastapi import Request
from pydantic_core import to_json
from sse_starlette import EventSourceResponse
from starlette.types import Message

from core.auth import AuthContext
from core.errors import CarrelError
from core.settings import Settings
from serve.errors import Refused
from serve.questions import Question, RunEvent, Runner

T = TypeVar("T")


async def cancel_when_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`; cancel it when the client leaves first (499, never sent)."""
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_wait_for_disconnect(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Refused(499, "client_gone", "the client has left")
    finally:
        for one in (task, gone):
            one.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


Ended = Exception | None
_pumps: set[asyncio.Task[None]] = set()  # the event loop itself holds its tasks only weakly


class FollowedRun:
    """Yield the events of one run; `close` cancels the run and frees its slot.

    The runner's generator is started, read and closed by one task, whichever tasks read from here.
    """

    def __init__(self, runner: Runner, question: Question, auth: AuthContext) -> None:
        self._events: asyncio.Queue[RunEvent | Ended] = asyncio.Queue()
        self._peeked: list[RunEvent | Ended] = []
        self._pump = asyncio.create_task(self._follow(runner, question, auth))
        _pumps.add(self._pump)
        self._pump.add_done_callback(_pumps.discard)

    async def _follow(self, runner: Runner, question: Question, auth: AuthContext) -> None:
        ended: Ended = None
        try:
            # Every runner's iterator is a generator; the protocol says what closing it does.
            events = cast(Any, runner.stream(question, auth))
            async with aclosing(events):
                async for event in events:
                    self._events.put_nowait(event)
        except Exception as error:  # it is raised again where the run is read
            ended = error
        self._events.put_nowait(ended)

    async def begin(self) -> None:
        """Wait for the first event; raises what keeps the run from beginning."""
        first = await self._events.get()
        if isinstance(first, Exception):
            raise first
        self._peeked.append(first)

    def __aiter__(self) -> AsyncIterator[RunEvent]:
        return self

    async def __anext__(self) -> RunEvent:
        event = self._peeked.pop() if self._peeked else await self._events.get()
        if isinstance(event, RunEvent):
            return event
        self._events.put_nowait(event)  # whoever asks again learns it again
        raise StopAsyncIteration if event is None else event

    def close(self) -> None:
        """Cancel the run unless it has ended; never waits, so it may be called when cancelled."""
        self._pump.cancel()


async def begin_run(runner: Runner, question: Question, auth: AuthContext) -> FollowedRun:
    """Return a run whose first event has arrived, so that a refusal is raised here."""
    run = FollowedRun(runner, question, auth)
    try:
        await run.begin()
    except BaseException:
        run.close()
        raise
    return run


async def result_of(events: AsyncIterator[RunEvent], steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Read a run to its end and return its result; `steps` gets its steps."""
    async for event in events:
        if event.kind == "step":
            steps.append(event.data)
        if event.kind == "result":
            return event.data
    raise CarrelError("the run ended without an answer or a refusal")


PING_SECONDS = 15  # between two signs of life in a stream; chosen, not measured
SEND_SECONDS = 30  # that a client may take to accept a piece of a stream; chosen, not measured


def json_text(value: Any) -> str:  # noqa: ANN401  # whatever a protocol sends
    """Return compact JSON; what JSON has no number for (infinity) becomes null."""
    return to_json(value, inf_nan_mode="null", serialize_unknown=True).decode()


def event_stream(
    events: AsyncIterator[dict[str, str]], run: FollowedRun, settings: Settings, sep: str = "\r\n"
) -> EventSourceResponse:
    """Send {"data", "event"?} dicts of a run as they come; the run ends when the client leaves.

    `sep` ends each line.
    """

    async def left(message: Message) -> None:
        run.close()  # the generator may not have begun, and then closes nothing

    return EventSourceResponse(
        events,
        ping=PING_SECONDS,
        send_timeout=SEND_SECONDS,
        shutdown_grace_period=settings.serve.stop_seconds,
        client_close_handler_callable=left,
        sep=sep,
    )
