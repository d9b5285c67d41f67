"""Processes forked from one that has imported everything, to be killed in numbers."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Mapping

# Imported here so that no child has to; nothing of them is opened before the fork.
import chromadb  # noqa: F401, I001

from app import session as composing
from benchmarks.ingest_corpus import InstantEmbedder
from cli import app
from core.settings import load_settings
from ingest import pipeline  # noqa: F401
from models.loading import open_embedder


class Forked:
    """Hold a child process."""

    def __init__(self, number: int) -> None:
        """Name it by its process id."""
        self.number = number

    def kill(self) -> None:
        """End it as a power cut does, if it still runs."""
        os.kill(self.number, signal.SIGKILL)

    def wait(self) -> int:
        """Return its exit code, negative for a signal."""
        return os.waitstatus_to_exitcode(os.waitpid(self.number, 0)[1])

    def ended(self) -> int | None:
        """Return its exit code where it has ended by itself, None while it runs."""
        number, status = os.waitpid(self.number, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if number else None


def forked(work: Callable[[], int], env: Mapping[str, str] | None = None) -> Forked:
    """Run `work` in a child without output, whose exit code it returns."""
    number = os.fork()
    if number:
        return Forked(number)
    code = 99
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        if not os.environ.get("SHOW_ERRORS"):
            os.dup2(nowhere, 2)
        os.environ.update(env or {})
        code = work()
    except BaseException:  # the child must not go on with the parent's work
        traceback.print_exc()
    finally:
        os._exit(code)


def run_carrel(arguments: list[str], *, real: bool) -> int:
    """Run a command of the command line and return its exit code."""
    if not real:
        composing.open_embedder = lambda settings: InstantEmbedder()  # type: ignore[attr-defined]
    return app.run(arguments)


def chosen_model(*, real: bool) -> str:
    """Return the id of the model that `run_carrel` embeds with."""
    settings, _ = load_settings({"reasoner": "rules"})
    return open_embedder(settings).model_id if real else InstantEmbedder.model_id
