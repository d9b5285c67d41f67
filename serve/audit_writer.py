"""Write audit rows from one thread, many at a time, while requests go on."""

from __future__ import annotations

import threading
import time
from collections import deque

from core.errors import CarrelError, OperatorError
from serve.logs import log
from stores.audit import AuditLog, Entry

MOST_HELD = 10_000
DAY = 24 * 3600.0
AFTER_ERROR = 5.0  # seconds until rows that nobody waits for are tried again


class AuditWriter:
    """Gather rows and write them together.

    A row that is waited for is written at once, with all that came before it, so that one forced
    write to the disk serves every request that waits; the others follow within `linger` seconds.
    """

    def __init__(self, log: AuditLog, *, linger: float, days: int) -> None:
        """Start no thread yet; rows older than `days` are pruned daily, with 0 never."""
        self._log = log
        self._linger = linger
        self.days = days
        self._changed = threading.Condition()
        self._held: deque[Entry] = deque()
        self._added = self._written = self._failed = 0
        self._wanted = 0  # up to this one somebody waits
        self._lost = 0
        self._error: Exception | None = None
        self._closing = False
        self._thread: threading.Thread | None = None
        self._pruned = float("-inf")

    def add(self, entry: Entry) -> int:
        """Have a row written soon; return its number, to wait for."""
        with self._changed:
            self._added += 1
            self._held.append(entry)
            self._trim()
            if self._thread is None:
                self._closing = False
                self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            return self._added

    def wait(self, number: int | None = None) -> None:
        """Wait until a row, or all, are kept; raises OperatorError when they cannot be."""
        with self._changed:
            number = self._added if number is None else number
            if self._written >= number:
                return
            self._failed = min(self._failed, number - 1)  # it may succeed now
            self._wanted = max(self._wanted, number)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._written >= number or self._failed >= number)
            if self._written < number:
                raise OperatorError(
                    "nothing is answered that the audit log cannot record",
                    value=str(self._error),
                    hint="free some space, or see the log",
                ) from self._error

    def close(self) -> None:
        """Write what is held and end the thread."""
        with self._changed:
            self._closing = True
            thread, self._thread = self._thread, None
            self._changed.notify_all()
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        self._prune()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._held, timeout=DAY)
                self._changed.wait_for(
                    lambda: self._closing or self._wanted > self._written,
                    timeout=AFTER_ERROR if self._error else self._linger,
                )
                batch, upto = list(self._held), self._added
                self._held.clear()
                closing = self._closing
            if batch:
                self._write(batch, upto)
            if closing:
                return
            self._prune()

    def _write(self, batch: list[Entry], upto: int) -> None:
        lost = self._lost
        rows = [*([Entry("lost", None, {"rows": lost})] if lost else []), *batch]
        error: Exception | None = None
        try:
            self._log.append(rows)
        except Exception as raised:  # whoever waits must hear of it, and the thread must go on
            error = raised
            log.error("audit rows could not be written: %s", raised)
        with self._changed:
            self._error = error
            if error is None:
                self._lost -= lost
                self._written = max(self._written, upto)
            else:
                self._held.extendleft(reversed(batch))
                self._trim()
                self._failed, self._wanted = upto, 0
            self._changed.notify_all()

    def _trim(self) -> None:
        while len(self._held) > MOST_HELD:  # only when the disk takes none
            self._held.popleft()
            self._lost += 1

    def _prune(self) -> None:
        if not self.days or time.monotonic() - self._pruned < DAY:
            return
        self._pruned = time.monotonic()
        try:
            self._log.prune(self.days)
        except (CarrelError, OSError) as error:
            log.error("old audit rows were not removed: %s", error)
        except Exception:
            log.exception("old audit rows were not removed")
