"""Runs of questions for the event loop: on worker threads, bounded, fair, and cancellable."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from typing import TypeVar, cast

from core.auth import AuthContext
from core.settings import Settings
from core.streaming import StreamEvent
from core.trace import RunRecord, Step
from graph.session import Session
from models.chat.types import ModelCancelled
from serve.errors import Busy
from serve.pool import FairPool, Owner, PoolLimits
from serve.types import Question, RunEvent
from serve.watch import Notes, Watchers

T = TypeVar("T")
Post = Callable[[object], None]


class SessionRunner:
    """Run questions, and short work such as searches, over one session.

    Both have their own threads, so that a search does not wait for questions of a slow model.
    """

    def __init__(
        self, session: Session, settings: Settings, watchers: Watchers | None = None
    ) -> None:
        """Start no thread yet; `watchers` let questions begin and follow them."""
        self._session = session
        self._watchers = watchers or Watchers()
        self._settings = settings
        self._stopping = threading.Event()
        self.asks = FairPool("ask", _limits(settings, settings.serve_threads))
        self.searches = FairPool("search", _limits(settings, settings.serve_search_threads))

    def use(self, settings: Settings) -> None:
        """Keep to the limits of these settings from now on; the number of threads stays."""
        self._settings = settings
        for pool in (self.asks, self.searches):
            pool.use(_limits(settings, pool.threads))

    async def run(self, question: Question, auth: AuthContext) -> RunRecord:
        """Return the finished run; raises a CarrelError, `Busy` when too many wait.

        When the task is cancelled the run is too.
        """
        gave_up = threading.Event()
        notes = await self._watchers.admit(auth)

        def ask() -> RunRecord:
            return self._ask(question, auth, gave_up, unheard, notes)

        return await self._awaited(self.asks, auth, ask, gave_up)

    async def stream(self, question: Question, auth: AuthContext) -> AsyncIterator[RunEvent]:
        """Yield what happens; closing the iterator cancels the run and frees its slot."""
        gave_up = threading.Event()
        events: asyncio.Queue[object] = asyncio.Queue()
        post = _poster(asyncio.get_running_loop(), events)
        notes = await self._watchers.admit(auth)

        def work() -> None:
            try:
                run = self._ask(question, auth, gave_up, post, notes)
                post(RunEvent("result", run.result))
            except BaseException as error:  # crosses to the loop, which raises it
                post(error)

        ticket = self.asks.submit(_owner(auth), work, post)
        try:
            while True:
                event = await events.get()
                if isinstance(event, BaseException):
                    raise event
                yield cast(RunEvent, event)
                if cast(RunEvent, event).kind == "result":
                    return
        finally:
            gave_up.set()
            self.asks.withdraw(ticket)

    async def do(self, auth: AuthContext, work: Callable[[], T]) -> T:
        """Do short work for a caller on a thread and return its result; raises `Busy`."""
        return await self._awaited(self.searches, auth, work, threading.Event())

    async def stop(self) -> None:
        """Turn new work away, cancel what runs, and wait for the threads as long as allowed."""
        self._stopping.set()
        for pool in (self.asks, self.searches):
            pool.close()
        seconds = self._settings.serve_cancel_seconds
        await asyncio.to_thread(self.asks.join, seconds)
        await asyncio.to_thread(self.searches.join, seconds)

    async def _awaited(
        self, pool: FairPool, auth: AuthContext, make: Callable[[], T], gave_up: threading.Event
    ) -> T:
        done: asyncio.Queue[object] = asyncio.Queue()
        post = _poster(asyncio.get_running_loop(), done)

        def work() -> None:
            try:
                post((make(),))
            except BaseException as error:
                post(error)

        ticket = pool.submit(_owner(auth), work, post)
        try:
            result = await done.get()
        finally:
            gave_up.set()
            pool.withdraw(ticket)
        if isinstance(result, BaseException):
            raise result
        return cast(tuple[T], result)[0]

    def _ask(
        self,
        question: Question,
        auth: AuthContext,
        gave_up: threading.Event,
        post: Post,
        notes: Notes,
    ) -> RunRecord:
        def cancelled() -> bool:
            return gave_up.is_set() or self._stopping.is_set()

        def check() -> None:
            if cancelled():
                raise ModelCancelled("the caller gave up while the run was at work")

        def on_step(step: Step) -> None:
            notes.step(step)
            check()
            post(RunEvent("step", step.model_dump(mode="json")))

        def on_stream(event: StreamEvent) -> None:
            if post is not unheard:
                notes.speaks()
            post(RunEvent(event.kind, {"text": event.text}))

        run: RunRecord | None = None
        try:
            check()
            run = self._session.ask(
                question.text,
                auth,
                question.collection,
                pipeline=question.pipeline,
                history=question.history,
                on_step=on_step,
                on_stream=on_stream,
                cancelled=cancelled,
            )
            return run
        except ModelCancelled:
            if not gave_up.is_set():  # the server stops; the caller is still there
                again = self._settings.serve_retry_seconds
                raise Busy("the server is stopping", retry_after=again) from None
            raise
        finally:
            notes.ended(run)


def unheard(event: object) -> None:
    """Hear what happens in a run that nobody watches."""


def _limits(settings: Settings, threads: int) -> PoolLimits:
    return PoolLimits(
        threads=threads,
        per_caller=min(threads, settings.serve_caller_threads),
        per_caller_shared=min(settings.serve_caller_threads, settings.serve_shared_threads),
        waiting=settings.serve_waiting,
        waiting_per_caller=settings.serve_caller_waiting,
        retry_after=settings.serve_retry_seconds,
    )


def _owner(auth: AuthContext) -> Owner:
    return auth.tenant, auth.user


def _poster(loop: asyncio.AbstractEventLoop, queue: asyncio.Queue[object]) -> Post:
    """Return how a thread hands something to the loop without waiting for it."""

    def post(event: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(queue.put_nowait, event)

    return post
