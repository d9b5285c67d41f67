"""Ask the data directory again and again whether it still finds what it holds."""

from __future__ import annotations

import logging
import threading
import time

from core.errors import CarrelError
from core.settings import Settings
from graph.session import Session
from serve.logs import CHECKS

FIRST_S = 10.0  # when the start is over: rot that left no trace is found soon, not at leisure
log = logging.getLogger(CHECKS)


class SelfChecks:
    """Check on a thread of its own, and repair what is derived from the truth."""

    def __init__(self, session: Session, settings: Settings) -> None:
        """Check the session's store; nothing runs before `start`."""
        self._store = session.store
        self._settings = settings
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def use(self, settings: Settings) -> None:
        """Take another interval, from the next check on."""
        self._settings = settings

    def start(self) -> None:
        """Begin with what opening has put off, or soon with a first check of everything."""
        self._thread = threading.Thread(target=self._run, name="self-checks", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, after a check that is under way."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def check(self) -> list[str]:
        """Check once and say in the log what was found; return the problems."""
        began = time.monotonic()
        try:
            problems = self._store.checkup.again()
        except CarrelError as error:
            problems = [str(error)]
        except Exception as error:  # a check must not end the thread, nor the server
            problems = [f"the self-check failed: {type(error).__name__}: {error}"]
        spent = 1000 * (time.monotonic() - began)
        if problems:
            log.error("self-check: %s (%.0f ms)", "; ".join(problems), spent)
        else:
            log.info("self-check: all is as it was written, and was found (%.0f ms)", spent)
        return problems

    def _run(self) -> None:
        seconds = 0.0 if self._store.checkup.pending else FIRST_S
        while not self._ended.wait(min(seconds, self._settings.check_interval_s)):
            self.check()
            seconds = self._settings.check_interval_s
