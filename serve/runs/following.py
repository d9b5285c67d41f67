"""Follow a run from a task of its own, so that whoever reads it may stop at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

from core.auth import AuthContext
from core.errors import CarrelError
from serve.types import Question, RunEvent, Runner

Ended = Exception | None
_pumps: set[asyncio.Task[None]] = set()  # the event loop itself holds its tasks only weakly


class Following:
    """Yield the events of one run; `close` cancels the run and frees its slot.

    The runner's generator is started, read and closed by one task, whichever tasks read from here.
    """

    def __init__(self, runner: Runner, question: Question, auth: AuthContext) -> None:
        """Start the run."""
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


async def begun(runner: Runner, question: Question, auth: AuthContext) -> Following:
    """Return a run whose first event is there, so that what keeps it out is raised here."""
    run = Following(runner, question, auth)
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
