"""Write audit rows many at a time, while requests go on."""

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

    Who waits for a row writes all that are held, and whoever comes meanwhile is served by the next
    write: one forced write to the disk for many requests. Rows that nobody waits for are written
    by a thread after `linger` seconds.
    """

    def __init__(self, log: AuditLog, *, linger: float, days: int) -> None:
        """Start no thread yet; rows older than `days` are pruned daily, with 0 never."""
        self._log = log
        self.linger = linger
        self.days = days
        self._changed = threading.Condition()
        self._held: deque[Entry] = deque()
        self._added = self._written = self._lost = 0
        self._writing = self._closing = False
        self._error: Exception | None = None
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
            if len(self._held) == 1:
                self._changed.notify_all()
            return self._added

    def wait(self, number: int | None = None) -> None:
        """Wait until a row, or all, are kept; raises OperatorError when they cannot be."""
        with self._changed:
            number = self._added if number is None else number
            while self._written < number:
                if self._writing:
                    self._changed.wait()
                elif (error := self._write()) is not None:
                    raise OperatorError(
                        "nothing is answered that the audit log cannot record",
                        value=str(error),
                        hint="free some space, or see the log",
                    ) from error

    def close(self) -> None:
        """Write what is held and end the thread."""
        with self._changed:
            self._closing = True
            thread, self._thread = self._thread, None
            self._changed.notify_all()
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while True:
            self._prune()
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._held, timeout=DAY)
                seconds = AFTER_ERROR if self._error else self.linger
                self._changed.wait_for(lambda: self._closing, timeout=seconds)
                self._changed.wait_for(lambda: not self._writing)
                if self._held:
                    self._write()
                if self._closing:
                    return

    def _write(self) -> Exception | None:
        """Write all that is held; called with the lock, which is free meanwhile."""
        batch, upto, lost = list(self._held), self._added, self._lost
        rows = [*([Entry("lost", None, {"rows": lost})] if lost else []), *batch]
        self._held.clear()
        self._writing, self._error = True, None
        self._changed.release()
        try:
            self._log.append(rows)
        except Exception as raised:  # whoever waits must hear of it, and the thread must go on
            self._error = raised
            log.error("audit rows could not be written: %s", raised)
        finally:
            self._changed.acquire()
            self._writing = False
            if self._error is None:
                self._written, self._lost = upto, self._lost - lost
            else:
                self._held.extendleft(reversed(batch))
                self._trim()
            self._changed.notify_all()
        return self._error

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
