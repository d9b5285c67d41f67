"""What a server records of its callers: who came in, what they were given, what they changed."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from typing import Any

from core.auth import AuthContext
from core.errors import CarrelError, OperatorError
from core.settings import Settings
from core.trace import RunRecord, Step
from serve.access.auth import AuthenticatedCaller as Entered
from serve.errors import new_id
from serve.runs.observers import RunObserver
from serve.telemetry.logs import log
from stores.accounts.audit import AuditEntry, AuditLog, Kind

LOGIN_MINUTES = 60  # after which the use of a key is recorded as a login again; chosen
LINGER_MS = 1000  # how long rows that nobody waits for are gathered; chosen, not measured

MOST_QUEUED = 10_000  # rows in memory while the disk takes none; chosen, not measured
DAY = 24 * 3600.0
AFTER_ERROR = 5.0  # seconds until rows that nobody waits for are tried again; chosen, not measured


class AuditWriter:
    """Gather rows and write them together.

    Who waits for a row writes all that are queued, and who comes meanwhile is served by the next
    write: one forced write to the disk for many requests. Rows that nobody waits for are written
    by a thread after `linger` seconds.
    """

    def __init__(self, log: AuditLog, *, linger: float, days: int) -> None:
        """Start no thread yet; rows older than `days` are pruned daily, with 0 never."""
        self._log = log
        self.linger = linger
        self.days = days
        self._changed = threading.Condition()
        self._queued: deque[AuditEntry] = deque()
        self._added = self._written = self._lost = 0
        self._writing = self._closing = False
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None
        self._pruned = float("-inf")

    def add(self, entry: AuditEntry) -> int:
        """Have a row written soon; return its number, to wait for."""
        with self._changed:
            self._added += 1
            self._queued.append(entry)
            self._trim()
            if self._thread is None:
                self._closing = False
                self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
                self._thread.start()
            if len(self._queued) == 1:
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
        """Write the queued rows and end the thread."""
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
                self._changed.wait_for(lambda: self._closing or self._queued, timeout=DAY)
                seconds = AFTER_ERROR if self._error else self.linger
                self._changed.wait_for(lambda: self._closing, timeout=seconds)
                self._changed.wait_for(lambda: not self._writing)
                if self._queued:
                    self._write()
                if self._closing:
                    return

    def _write(self) -> Exception | None:
        """Write all queued rows; called with the lock, which is free meanwhile."""
        batch, upto, lost = list(self._queued), self._added, self._lost
        rows = [*([AuditEntry("lost", None, {"rows": lost})] if lost else []), *batch]
        self._queued.clear()
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
                self._queued.extendleft(reversed(batch))
                self._trim()
            self._changed.notify_all()
        return self._error

    def _trim(self) -> None:
        while len(self._queued) > MOST_QUEUED:  # only when the disk takes none
            self._queued.popleft()
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


REMEMBERED = 10_000  # callers whose last login is known; chosen, not measured


class Audit:
    """Record what callers do; texts, questions and keys are no part of it.

    `record` is for threads: when it returns, the row is kept. `note` never waits.
    """

    def __init__(self, log: AuditLog, settings: Settings) -> None:
        """Write into a data directory's log; start no thread yet."""
        self.settings = settings
        self.log = log
        self._writer = AuditWriter(log, linger=LINGER_MS / 1000, days=settings.audit.days)
        self._seen: OrderedDict[tuple[str, ...], float] = OrderedDict()
        self._lock = threading.Lock()

    def use(self, settings: Settings) -> None:
        """Record by these settings from now on."""
        self.settings = settings
        self._writer.days = settings.audit.days

    def record(self, kind: Kind, auth: AuthContext | None, **facts: Any) -> None:  # noqa: ANN401
        """Keep a row before returning; raises OperatorError when it cannot be kept."""
        if self.settings.audit.enabled:
            self._writer.wait(self._writer.add(AuditEntry(kind, auth, facts)))

    def note(self, kind: Kind, auth: AuthContext | None, **facts: Any) -> None:  # noqa: ANN401
        """Have a row kept soon."""
        if self.settings.audit.enabled:
            self._writer.add(AuditEntry(kind, auth, facts))

    def flush(self) -> None:
        """Wait until every row noted so far is kept; raises OperatorError when one cannot be."""
        if self.settings.audit.enabled:
            self._writer.wait()

    def note_login(self, entry: Entered, address: str) -> None:
        """Note a login: the first use of a key, or of a token's user, in a while."""
        key = entry.key.id if entry.key else ""
        who = (entry.how, key, entry.auth.tenant, entry.auth.user)
        now = time.monotonic()
        with self._lock:
            last = self._seen.get(who)
            if last is not None and now - last < 60 * LOGIN_MINUTES:
                return
            self._seen[who] = now
            self._seen.move_to_end(who)
            while len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
        self.note("login", entry.auth, how=entry.how, key=key, address=address)

    async def admit(self, auth: AuthContext) -> RunObserver:
        """Follow a run."""
        return _Recording(self, auth)

    def question(self, text: str) -> dict[str, str]:
        """Return the fields recorded of a question, by the settings."""
        if self.settings.audit.questions == "text":
            return {"question": text}
        if self.settings.audit.questions == "hash":
            return {"question_hash": self.log.pseudonym(text)}
        return {}

    def close(self) -> None:
        """Write the noted rows, and end; it begins again with the next row."""
        self._writer.close()


class _Recording(RunObserver):
    """Record the passages that one run was given, before any of its text leaves."""

    def __init__(self, audit: Audit, auth: AuthContext) -> None:
        self._audit = audit
        self._auth = auth
        self._ask = new_id()  # a run has its own id only when it has ended

    def on_step(self, step: Step) -> None:
        """Note a tool call."""
        if not step.tool:
            return
        found = [evidence_id for evidence_id, _ in step.evidence]
        facts = {"tool": step.tool, "filter": step.auth_filter, "evidence": found}
        self._audit.note("retrieval", self._auth, ask=self._ask, **facts)

    def on_first_text(self) -> None:
        """Wait until the calls are recorded."""
        self._audit.flush()

    def on_end(self, run: RunRecord | None) -> None:
        """Record the answer or the refusal."""
        if run is None:
            return
        self._audit.record(
            "answer",
            self._auth,
            ask=self._ask,
            run=run.run_id,
            collection=run.collection,
            refused=run.result.get("refused"),
            stop_reason=run.result.get("stop_reason"),
            **self._audit.question(run.question),
        )
