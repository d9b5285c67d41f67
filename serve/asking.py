"""One question on its worker thread: watched, cancellable, and remembered when it is answered."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from core.auth import AuthContext
from core.settings import Settings
from core.streaming import StreamEvent
from core.trace import RunRecord, Step
from graph.session import Session
from models.chat.types import ModelCancelled
from serve.errors import Busy
from serve.finished import Finished
from serve.types import Question, RunEvent
from serve.watch import Notes

Post = Callable[[object], None]


def unheard(event: object) -> None:
    """Hear what happens in a run that nobody watches."""


@dataclass(frozen=True)
class Listener:
    """Hold who follows a run: a client, who may give up, and those that note what it does."""

    gave_up: threading.Event
    notes: Notes
    post: Post = unheard

    def step(self, step: Step) -> None:
        """Tell the client of a step."""
        self.post(RunEvent("step", step.model_dump(mode="json")))

    def text(self, event: StreamEvent) -> None:
        """Tell the client of a piece of the answer."""
        if self.post is not unheard:
            self.notes.speaks()
        self.post(RunEvent(event.kind, {"text": event.text}))


class Asker:
    """Run questions over one session until `stopping` is set."""

    def __init__(self, session: Session, settings: Settings, stopping: threading.Event) -> None:
        """Remember no answers until `finished` is given."""
        self._session = session
        self._settings = settings
        self._stopping = stopping
        self.finished: Finished | None = None

    def use(self, settings: Settings) -> None:
        """Keep to these settings from now on."""
        self._settings = settings

    def ask(self, question: Question, auth: AuthContext, listener: Listener) -> RunRecord:
        """Return the finished run, or the one that has answered the same; raises a CarrelError."""
        run: RunRecord | None = None
        try:
            self._check(listener)
            finished = self.finished
            asked = finished.asked(question, auth) if finished else None
            run = finished.known(asked, auth) if finished else None
            if run is not None:
                for step in run.trail:
                    listener.notes.step(step.model_copy(update={"calls": []}))  # nothing is spent
                    listener.step(step)
                return run
            run = self._run(question, auth, listener)
            if finished is not None:
                finished.ended(asked, run)
            return run
        except ModelCancelled:
            if not listener.gave_up.is_set():  # the server stops; the caller is still there
                again = self._settings.serve_retry_seconds
                raise Busy("the server is stopping", retry_after=again) from None
            raise
        finally:
            listener.notes.ended(run)

    def _run(self, question: Question, auth: AuthContext, listener: Listener) -> RunRecord:
        def on_step(step: Step) -> None:
            listener.notes.step(step)
            self._check(listener)
            listener.step(step)

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
            on_stream=listener.text,
            cancelled=lambda: self._cancelled(listener),
        )

    def _cancelled(self, listener: Listener) -> bool:
        return listener.gave_up.is_set() or self._stopping.is_set()

    def _check(self, listener: Listener) -> None:
        if self._cancelled(listener):
            raise ModelCancelled("the caller gave up while the run was at work")
