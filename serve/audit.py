"""What a server records of its callers: who came in, what they were given, what they changed."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import Any

from core.auth import AuthContext
from core.settings import Settings
from core.trace import RunRecord, Step
from serve.audit_writer import AuditWriter
from serve.auth import Entry as Entered
from serve.errors import new_id
from serve.watch import Note, Unwatched
from stores.audit import AuditLog, Entry, Kind

REMEMBERED = 10_000


class Audit:
    """Record what callers do; texts, questions and keys are no part of it.

    `record` is for threads: when it returns, the row is kept. `note` never waits.
    """

    def __init__(self, log: AuditLog, settings: Settings) -> None:
        """Write into a data directory's log; start no thread yet."""
        self.settings = settings
        self.log = log
        linger = settings.audit_linger_ms / 1000
        self._writer = AuditWriter(log, linger=linger, days=settings.audit_days)
        self._seen: OrderedDict[tuple[str, ...], float] = OrderedDict()
        self._lock = threading.Lock()

    def use(self, settings: Settings) -> None:
        """Record by these settings from now on."""
        self.settings = settings
        self._writer.linger = settings.audit_linger_ms / 1000
        self._writer.days = settings.audit_days

    def record(self, kind: Kind, auth: AuthContext | None, **facts: Any) -> None:  # noqa: ANN401
        """Keep a row before returning; raises OperatorError when it cannot be kept."""
        if self.settings.audit:
            self._writer.wait(self._writer.add(Entry(kind, auth, facts)))

    def note(self, kind: Kind, auth: AuthContext | None, **facts: Any) -> None:  # noqa: ANN401
        """Have a row kept soon."""
        if self.settings.audit:
            self._writer.add(Entry(kind, auth, facts))

    def flush(self) -> None:
        """Wait until every row noted so far is kept; raises OperatorError when one cannot be."""
        if self.settings.audit:
            self._writer.wait()

    def entered(self, entry: Entered, address: str) -> None:
        """Note a login: the first use of a key, or of a token's user, in a while."""
        key = entry.key.id if entry.key else ""
        who = (entry.how, key, entry.auth.tenant, entry.auth.user)
        now = time.monotonic()
        with self._lock:
            last = self._seen.get(who)
            if last is not None and now - last < 60 * self.settings.audit_login_minutes:
                return
            self._seen[who] = now
            self._seen.move_to_end(who)
            while len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
        self.note("login", entry.auth, how=entry.how, key=key, address=address)

    async def admit(self, auth: AuthContext) -> Note:
        """Follow a run."""
        return _Recording(self, auth)

    def question(self, text: str) -> dict[str, str]:
        """Return what is recorded of a question, by the settings."""
        if self.settings.audit_questions == "text":
            return {"question": text}
        if self.settings.audit_questions == "hash":
            return {"question_hash": self.log.pseudonym(text)}
        return {}

    def close(self) -> None:
        """Keep what is noted, and end; it begins again with the next row."""
        self._writer.close()


class _Recording(Unwatched):
    """Record what one run was given; the rows are kept before any of its text leaves."""

    def __init__(self, audit: Audit, auth: AuthContext) -> None:
        self._audit = audit
        self._auth = auth
        self._ask = new_id()  # a run has its own id only when it has ended

    def step(self, step: Step) -> None:
        """Note a tool call."""
        if not step.tool:
            return
        found = [evidence_id for evidence_id, _ in step.evidence]
        facts = {"tool": step.tool, "filter": step.auth_filter, "evidence": found}
        self._audit.note("retrieval", self._auth, ask=self._ask, **facts)

    def speaks(self) -> None:
        """Wait until the calls are recorded."""
        self._audit.flush()

    def ended(self, run: RunRecord | None) -> None:
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
