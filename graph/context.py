"""What a run needs and must not persist, made and checked in one place."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from core.auth import AuthContext
from core.budget import Budget, Usage
from core.errors import CallerError
from core.settings import Settings
from reasoning.types import Reasoner
from tools.toolbox import Toolbox


@dataclass(frozen=True)
class Context:
    """Carry the caller's rights, the limits and the parts of one run."""

    auth: AuthContext
    budget: Budget
    tools: Toolbox
    reasoner: Reasoner
    settings: Settings
    clock: Callable[[], float]

    def elapsed(self, started: float) -> Usage:
        """Return the wall-clock time since `started` as usage, and one step."""
        return Usage(steps=1, ms=round((self.clock() - started) * 1000, 3))

    def deadline(self, started: float) -> float:
        """Return when this run's time is used up, by the clock."""
        return started + self.budget.seconds


def make_context(
    auth: AuthContext,
    tools: Toolbox,
    reasoner: Reasoner,
    settings: Settings,
    *,
    budget: Budget | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Context:
    """Build the context of one run; the CLI, servers, Studio and tests all come through here.

    `clock` must tell the time of `time.monotonic()`, since tools compare deadlines with it.
    """
    for name, value, kind in (
        ("auth", auth, AuthContext),
        ("tools", tools, Toolbox),
        ("settings", settings, Settings),
    ):
        if not isinstance(value, kind):
            raise CallerError(f"a run needs {name}", value=type(value).__name__)
    return Context(auth, budget or settings.budget(), tools, reasoner, settings, clock)


def checked_question(question: str, settings: Settings) -> str:
    """Return the question without surrounding space, or say what is wrong with it."""
    text = question.encode("utf-8", "replace").decode("utf-8").strip().replace("\x00", "")
    if not any(character.isalnum() for character in text):
        raise CallerError(
            "a question needs at least one word",
            value=question,
            hint="ask something about your documents",
        )
    if len(text) > settings.max_question_chars:
        raise CallerError(
            f"a question has at most {settings.max_question_chars} characters (max_question_chars)",
            value=f"{len(text)} characters",
            hint="ask a shorter question, or ingest the text as a document",
        )
    return text
