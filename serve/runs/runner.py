"""Runs of questions for the event loop: on worker threads, bounded, fair, and cancellable."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from app.session import Session
from core.auth import AuthContext
from core.budget import TimeLimit, limited_time
from core.language.detect import detect_language
from core.settings import Settings
from core.trace import RunRecord, Step, StreamEvent
from display.steps import shown_step
from models.chat.types import ModelCancelled
from serve.errors import Busy
from serve.questions import Question, RunEvent
from serve.runs.answer_cache import AnswerCache
from serve.runs.observers import Claims, RunGate, RunObservers
from serve.runs.pool import RETRY_SECONDS, FairPool, PoolLimits

CANCEL_SECONDS = 5  # that questions have to notice that they are cancelled; chosen, not measured

Post = Callable[[object], None]


def discard(event: object) -> None:
    """Ignore an event: for runs that no client follows."""


@dataclass(frozen=True)
class RunCallbacks:
    """Who is sent the events of a run: a client, who may give up, and the observers."""

    gave_up: threading.Event
    observers: RunObservers
    post: Post = discard
    language: str = ""

    def step(self, step: Step) -> None:
        """Tell the client of a step."""
        self.post(RunEvent("step", shown_step(step, self.language)))

    def text(self, event: StreamEvent) -> None:
        """Tell the client of a piece of the answer."""
        if self.post is not discard:
            self.observers.on_first_text()
        self.post(RunEvent(event.kind, {"text": event.text}))


class Answerer:
    """Run questions over one session until `stopping` is set."""

    def __init__(self, session: Session, stopping: threading.Event) -> None:
        """Remember no answers until `cache` is given."""
        self._session = session
        self._stopping = stopping
        self.cache: AnswerCache | None = None

    def ask(self, question: Question, auth: AuthContext, callbacks: RunCallbacks) -> RunRecord:
        """Return the finished run, or the one that has answered the same; raises a CarrelError."""
        run: RunRecord | None = None
        try:
            self._check(callbacks)
            cache = self.cache
            asked = cache.key_of(question, auth) if cache else None
            run = cache.find(asked, auth) if cache else None
            if run is not None:
                for step in run.trail:
                    callbacks.observers.on_step(
                        step.model_copy(update={"calls": []})
                    )  # nothing is spent
                    callbacks.step(step)
                return run
            run = self._run(question, auth, callbacks)
            if cache is not None:
                cache.remember(asked, run)
            return run
        except ModelCancelled:
            if not callbacks.gave_up.is_set():  # the server stops; the caller is still there
                again = RETRY_SECONDS
                raise Busy("the server is stopping", retry_after=again) from None
            raise
        finally:
            callbacks.observers.on_end(run)

    def _run(self, question: Question, auth: AuthContext, callbacks: RunCallbacks) -> RunRecord:
        def on_step(step: Step) -> None:
            callbacks.observers.on_step(step)
            self._check(callbacks)
            callbacks.step(step)

        return self._session.ask(
            question.text,
            auth,
            question.collection,
            pipeline=question.pipeline,
            history=question.history,
            conversation=question.conversation,
            clarify=question.clarify,
            where=question.where,
            on_step=on_step,
            on_stream=callbacks.text,
            cancelled=lambda: self._is_cancelled(callbacks),
        )

    def _is_cancelled(self, callbacks: RunCallbacks) -> bool:
        return callbacks.gave_up.is_set() or self._stopping.is_set()

    def _check(self, callbacks: RunCallbacks) -> None:
        if self._is_cancelled(callbacks):
            raise ModelCancelled("the caller gave up while the run was at work")


THREADS_PER_PROCESSOR = 2  # most of a question is spent in code that runs side by side

T = TypeVar("T")
Make = Callable[[threading.Event, Post], T]


@dataclass(frozen=True)
class _End:
    """Hold the return value of a piece of work, to tell it from events."""

    value: Any


class SessionRunner:
    """Run questions, and short work such as searches, over one session.

    Both have their own threads, so that a search does not wait for questions of a slow model.
    """

    def __init__(self, session: Session, settings: Settings, gates: Sequence[RunGate] = ()) -> None:
        """Start no thread yet; `gates` let questions begin and follow them."""
        self.condition = session.maintenance.condition
        self._gates = gates
        self._settings = settings
        self._stopping = threading.Event()
        self.claims = Claims(session.maintenance.coordination)
        self.answerer = Answerer(session, self._stopping)
        self.asks = FairPool("ask", _limits(settings, ask_threads(session, settings)))
        self.searches = FairPool("search", _limits(settings, settings.serve.search_threads))

    def use(self, settings: Settings) -> None:
        """Keep to the limits of these settings from now on; the number of threads stays."""
        self._settings = settings
        for pool in (self.asks, self.searches):
            pool.use(_limits(settings, pool.threads))

    async def _admit(self, auth: AuthContext) -> RunObservers:
        return RunObservers([await gate.admit(auth) for gate in self._gates])

    async def run(self, question: Question, auth: AuthContext) -> RunRecord:
        """Return the finished run; raises a CarrelError, `Busy` when too many wait.

        When the task is cancelled the run is too.
        """
        observers = await self._admit(auth)

        def ask(gave_up: threading.Event, post: Post) -> RunRecord:
            return self.answerer.ask(question, auth, RunCallbacks(gave_up, observers))

        return await self._await_value(self.asks, auth, ask, question.conversation)

    async def stream(self, question: Question, auth: AuthContext) -> AsyncIterator[RunEvent]:
        """Yield what happens; closing the iterator cancels the run and frees its slot."""
        observers = await self._admit(auth)

        def ask(gave_up: threading.Event, post: Post) -> RunEvent:
            callbacks = RunCallbacks(gave_up, observers, post, detect_language(question.text))
            return RunEvent("result", self.answerer.ask(question, auth, callbacks).result)

        async with aclosing(self._events(self.asks, auth, ask, question.conversation)) as events:
            async for event in events:
                yield event.value if isinstance(event, _End) else cast(RunEvent, event)

    async def do(self, auth: AuthContext, work: Callable[[], T]) -> T:
        """Do short work for a caller on a thread and return its result; raises `Busy`.

        What it reads takes no longer than a question may.
        """

        def timed(gave_up: threading.Event, post: Post) -> T:
            with limited_time(TimeLimit(time.monotonic() + self._settings.budget.seconds)):
                return work()

        return await self._await_value(self.searches, auth, timed)

    async def stop(self) -> None:
        """Turn new work away, cancel what runs, and wait for the threads as long as allowed."""
        self._stopping.set()
        for pool in (self.asks, self.searches):
            pool.close()
        seconds = CANCEL_SECONDS
        await asyncio.to_thread(self.asks.join, seconds)
        await asyncio.to_thread(self.searches.join, seconds)

    async def _await_value(
        self, pool: FairPool, auth: AuthContext, make: Make[T], conversation: str = ""
    ) -> T:
        async with aclosing(self._events(pool, auth, make, conversation)) as events:
            async for event in events:
                if isinstance(event, _End):
                    return cast(T, event.value)
        raise AssertionError  # all events end with what was made, or raise

    async def _events(
        self, pool: FairPool, auth: AuthContext, make: Make[Any], conversation: str
    ) -> AsyncGenerator[object, None]:
        """Yield the events that `make` posts from a thread of the pool, and last its return value.

        The conversation is claimed until then. `make` hears that nobody reads any more.
        """
        gave_up = threading.Event()
        events: asyncio.Queue[object] = asyncio.Queue()
        post = _poster(asyncio.get_running_loop(), events)
        give_back = self.claims.take(auth, conversation) if conversation else lambda: None

        def end(ended: object) -> None:
            give_back()
            post(ended)

        def work() -> None:
            try:
                ended: object = _End(make(gave_up, post))
            except BaseException as error:  # crosses to the loop, which raises it
                ended = error
            end(ended)

        try:
            ticket = pool.submit((auth.tenant, auth.user), work, end)
        except BaseException:
            give_back()
            raise
        try:
            while True:
                event = await events.get()
                if isinstance(event, BaseException):
                    raise event
                yield event
                if isinstance(event, _End):
                    return
        finally:
            gave_up.set()
            if pool.withdraw(ticket):
                give_back()


def ask_threads(session: Session, settings: Settings) -> int:
    """Return how many questions are worked on at once."""
    if settings.serve.threads:
        return settings.serve.threads
    slots = session.chat.capabilities.slots if session.chat is not None else 0
    return max(slots, THREADS_PER_PROCESSOR * (os.cpu_count() or 1))


def _limits(settings: Settings, threads: int) -> PoolLimits:
    return PoolLimits(
        threads=threads,
        per_caller=min(threads, settings.serve.caller_threads),
        per_caller_shared=min(settings.serve.caller_threads, settings.serve.shared_threads),
        waiting=settings.serve.waiting,
        waiting_per_caller=settings.serve.caller_waiting,
    )


def _poster(loop: asyncio.AbstractEventLoop, queue: asyncio.Queue[object]) -> Post:
    """Return how a thread hands something to the loop without waiting for it."""

    def post(event: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(queue.put_nowait, event)

    return post
