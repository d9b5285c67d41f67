"""Runs of questions for the event loop: on worker threads, bounded, fair, and cancellable."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import TypeVar, cast

from core.auth import AuthContext
from core.settings import Settings
from core.time_limit import TimeLimit, limited_time
from core.trace import RunRecord
from graph.session import Session
from serve.asking import Asker, Listener, Post
from serve.claims import Claims
from serve.errors import Busy
from serve.pool import FairPool, Owner, PoolLimits, Ticket
from serve.types import Question, RunEvent
from serve.watch import Watchers

THREADS_PER_PROCESSOR = 2  # most of a question is spent in code that runs side by side

T = TypeVar("T")


def nothing() -> None:
    """Give nothing back."""


class SessionRunner:
    """Run questions, and short work such as searches, over one session.

    Both have their own threads, so that a search does not wait for questions of a slow model.
    """

    def __init__(
        self, session: Session, settings: Settings, watchers: Watchers | None = None
    ) -> None:
        """Start no thread yet; `watchers` let questions begin and follow them."""
        self.condition = session.store.database.condition
        self._watchers = watchers or Watchers()
        self._settings = settings
        self._stopping = threading.Event()
        self.claims = Claims()
        self.asker = Asker(session, settings, self._stopping)
        self.asks = FairPool("ask", _limits(settings, ask_threads(session, settings)))
        self.searches = FairPool("search", _limits(settings, settings.serve_search_threads))

    def use(self, settings: Settings) -> None:
        """Keep to the limits of these settings from now on; the number of threads stays."""
        self._settings = settings
        self.asker.use(settings)
        for pool in (self.asks, self.searches):
            pool.use(_limits(settings, pool.threads))

    async def run(self, question: Question, auth: AuthContext) -> RunRecord:
        """Return the finished run; raises a CarrelError, `Busy` when too many wait.

        When the task is cancelled the run is too.
        """
        gave_up = threading.Event()
        notes = await self._watchers.admit(auth)

        def ask() -> RunRecord:
            return self.asker.ask(question, auth, Listener(gave_up, notes))

        return await self._awaited(self.asks, auth, ask, gave_up, self._claimed(question, auth))

    async def stream(self, question: Question, auth: AuthContext) -> AsyncIterator[RunEvent]:
        """Yield what happens; closing the iterator cancels the run and frees its slot."""
        gave_up = threading.Event()
        events: asyncio.Queue[object] = asyncio.Queue()
        post = _poster(asyncio.get_running_loop(), events)
        notes = await self._watchers.admit(auth)
        give_back = self._claimed(question, auth)

        def work() -> None:
            ended: object
            try:
                run = self.asker.ask(question, auth, Listener(gave_up, notes, post))
                ended = RunEvent("result", run.result)
            except BaseException as error:  # crosses to the loop, which raises it
                ended = error
            give_back()
            post(ended)

        ticket = self._submitted(self.asks, auth, work, post, give_back)
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
            if self.asks.withdraw(ticket):
                give_back()

    async def do(self, auth: AuthContext, work: Callable[[], T]) -> T:
        """Do short work for a caller on a thread and return its result; raises `Busy`.

        What it reads takes no longer than a question may.
        """

        def timed() -> T:
            with limited_time(TimeLimit(time.monotonic() + self._settings.budget_seconds)):
                return work()

        return await self._awaited(self.searches, auth, timed, threading.Event())

    async def stop(self) -> None:
        """Turn new work away, cancel what runs, and wait for the threads as long as allowed."""
        self._stopping.set()
        for pool in (self.asks, self.searches):
            pool.close()
        seconds = self._settings.serve_cancel_seconds
        await asyncio.to_thread(self.asks.join, seconds)
        await asyncio.to_thread(self.searches.join, seconds)

    async def _awaited(
        self,
        pool: FairPool,
        auth: AuthContext,
        make: Callable[[], T],
        gave_up: threading.Event,
        give_back: Callable[[], None] = nothing,
    ) -> T:
        done: asyncio.Queue[object] = asyncio.Queue()
        post = _poster(asyncio.get_running_loop(), done)

        def work() -> None:
            ended: object
            try:
                ended = (make(),)
            except BaseException as error:
                ended = error
            give_back()
            post(ended)

        ticket = self._submitted(pool, auth, work, post, give_back)
        try:
            result = await done.get()
        finally:
            gave_up.set()
            if pool.withdraw(ticket):
                give_back()
        if isinstance(result, BaseException):
            raise result
        return cast(tuple[T], result)[0]

    def _claimed(self, question: Question, auth: AuthContext) -> Callable[[], None]:
        """Claim the question's conversation; return what gives it back when the run has ended."""
        if not question.conversation:
            return nothing
        return self.claims.take(auth, question.conversation)

    def _submitted(
        self,
        pool: FairPool,
        auth: AuthContext,
        work: Callable[[], None],
        post: Post,
        give_back: Callable[[], None],
    ) -> Ticket:
        def dropped(error: Busy) -> None:
            give_back()
            post(error)

        try:
            return pool.submit(_owner(auth), work, dropped)
        except BaseException:
            give_back()
            raise


def ask_threads(session: Session, settings: Settings) -> int:
    """Return how many questions are worked on at once."""
    if settings.serve_threads:
        return settings.serve_threads
    slots = session.chat.capabilities.slots if session.chat is not None else 0
    return max(slots, THREADS_PER_PROCESSOR * (os.cpu_count() or 1))


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
