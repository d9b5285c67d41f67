"""The audit log: rows that can be added and read, and whose change is found."""

from __future__ import annotations

import datetime
import hmac
import json
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from core.auth import AuthContext
from core.settings import Settings
from stores.accounts.audit_chain import (
    ACCEPTED,
    CHECKPOINT,
    FIELDS,
    TAMPERED,
    ChainCheck,
    Head,
    Verdict,
    audit_key,
    canonical,
    read_head,
    signed,
    write_head,
)
from stores.accounts.keys import Now, moment_text, utc_now
from stores.sqlite.database import Database
from stores.sqlite.schema import AUDIT_KEPT

ASIDE = "audit.aside"


class Aside:
    """Keep rows as lines of JSON in a file; rows changed there are not returned."""

    def __init__(self, folder: Path, key: bytes) -> None:
        self._path = folder / ASIDE
        self._key = key
        self._head: Head | None = None

    def head(self) -> Head:
        """Return the last row, which the next one follows."""
        if self._head is None:
            self._head = self.read()[1].head
        return self._head

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keep rows, each following the one before; when this returns they are on the disk."""
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
            file.flush()
            os.fsync(file.fileno())
        if rows:
            self._head = Head(rows[-1]["seq"], rows[-1]["hash"])

    def read(self) -> tuple[list[dict[str, Any]], Verdict]:
        """Return the rows up to the first that was changed, and the problem there."""
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            lines = []
        rows: list[dict[str, Any]] = []
        check = ChainCheck(self._key)
        try:
            verdict = check.walk(_noting(lines, rows))
        except (ValueError, TypeError, KeyError):  # a line that is no row
            verdict = Verdict(check.rows, check.head, "a row cannot be read")
        return rows[: verdict.rows], verdict

    def clear(self) -> None:
        """Forget the rows, which the catalogue has by now."""
        self._path.unlink(missing_ok=True)
        self._head = None


def _noting(lines: list[bytes], rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for line in lines:
        rows.append(json.loads(line))
        yield rows[-1]


Kind = Literal[
    "login",
    "login_failed",
    "retrieval",
    "answer",
    "upload",
    "deletion",
    "access_changed",
    "key_created",
    "key_revoked",
    "settings",
    "lost",  # rows that could not be written, by their number
]
log = logging.getLogger("carrel.audit")

SEEN = "audit_rows"  # of the catalogue's meta: the last row's number, should all rows be removed
# Of a document or a file: an id, or a name, is a text of somebody who may want it forgotten.
HASH = "document_hash"


@dataclass(frozen=True)
class AuditEntry:
    """One event: who caused it (None when unknown), and its facts in JSON's types."""

    kind: str
    auth: AuthContext | None
    facts: Mapping[str, Any]
    at: datetime.datetime = field(default_factory=utc_now)


Change = Callable[[sqlite3.Connection], Sequence[AuditEntry]]


class AuditLog:
    """Add rows to the chain of a data directory; other processes may add to it as well."""

    def __init__(self, database: Database, settings: Settings, now: Now = utc_now) -> None:
        """Use the catalogue's file; raises OperatorError without the key of its rows."""
        self._database = database
        self._now = now
        self._folder = database.path.parent
        last = self._last(database.read())
        self._key = audit_key(settings, self._folder, has_rows=last.seq > 0)
        self._head = read_head(self._folder) or last
        self._aside = Aside(self._folder, self._key)
        self._lock = threading.Lock()

    def append(self, entries: Sequence[AuditEntry], change: Change | None = None) -> Head:
        """Add rows in one transaction and return the last; when this returns they are kept.

        With `change` that is done in the same transaction, and the rows that it returns are added.
        While rows of the catalogue are missing they are kept aside; they follow when that is over.
        """
        with self._lock:
            if change is not None:
                self._database.check_writable()
            if self._database.condition.lost:
                rows, head = [], self._aside.head()
                for entry in entries:
                    rows.append(self._row(head, entry))
                    head = Head(rows[-1]["seq"], rows[-1]["hash"])
                self._aside.add(rows)
                return self._head
            aside, verdict = self._aside.read()
            kept = [_entry(row) for row in aside]
            if verdict.problem:
                kept.append(AuditEntry("lost", None, {"rows": "unknown", "why": verdict.problem}))
            with self._database.write() as connection:
                head = self._intact(connection, kept)
                made = change(connection) if change is not None else ()
                for entry in (*kept, *entries, *made):
                    head = self._insert(connection, head, entry)
            self._note(head)
            if kept:
                self._aside.clear()
            return head

    def accept_loss(self, missing: Sequence[str]) -> None:
        """Keep a row that says that missing rows were accepted; it follows with the next `append`.

        To be called before the catalogue is written again.
        """
        found = self._last(self._database.read()).seq
        known = {"known": self._head.seq, "hash": self._head.hash}
        facts = {**known, "found": found, "missing": list(missing)}
        self.append([AuditEntry(ACCEPTED, None, facts, self._now())])

    def prune(self, days: int) -> int:
        """Remove rows older than `days` and sign up to where; return how many were removed.

        The last row always stays.
        """
        before = moment_text(self._now() - datetime.timedelta(days=days))
        with self._lock:
            with self._database.write() as connection:
                head = self._intact(connection)
                query = "SELECT coalesce(min(seq), 0) FROM audit WHERE at >= ?"
                kept = int(connection.execute(query, (before,)).fetchone()[0]) or head.seq
                query = "SELECT hash FROM audit WHERE seq = ?"
                row = connection.execute(query, (kept - 1,)).fetchone()
                if row is None:
                    return 0
                facts = {"upto": kept - 1, "hash": row["hash"]}
                head = self._insert(
                    connection, head, AuditEntry(CHECKPOINT, None, facts, self._now())
                )
                connection.execute("DROP TRIGGER audit_kept")
                removed = connection.execute("DELETE FROM audit WHERE seq < ?", (kept,)).rowcount
                connection.execute(AUDIT_KEPT)
            self._note(head)
            return removed

    def verify(self, *expected: Head) -> Verdict:
        """Check the whole chain; `expected` are heads that were noted earlier."""
        noted = read_head(self._folder)  # before the rows: those are added to meanwhile
        seen = self._read_seen(self._database.read())
        known = expected if noted is None else (*expected, noted)
        check = ChainCheck(self._key, known)
        try:
            verdict = check.walk(self.rows())
        except sqlite3.OperationalError:  # bytes that are no text
            return Verdict(check.rows, check.head, "the row cannot be read", check.head.seq + 1)
        if not verdict.problem and seen > verdict.head.seq:
            gone = f"rows up to {seen} were written and are gone"
            return Verdict(verdict.rows, verdict.head, gone, verdict.head.seq + 1)
        if not verdict.problem and noted is None and verdict.rows:
            return Verdict(verdict.rows, verdict.head, "the note of the last row is gone")
        return verdict

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield all rows as they are kept, the oldest first."""
        cursor = self._database.read().execute("SELECT * FROM audit ORDER BY seq")
        yield from ({name: row[name] for name in FIELDS} for row in cursor)

    def newest(
        self,
        tenant: str | None,
        *,
        before: int | None = None,
        kind: str | None = None,
        document: str | None = None,
        limit: int,
    ) -> list[dict[str, Any]]:
        """List rows of one tenant, or with None of all, the newest first.

        With `document` only those that stand for the document, or file, of this name.
        """
        named = None if document is None else self.pseudonym(document)
        rows = self._database.read().execute(
            """SELECT seq, at, kind, tenant, user, facts FROM audit
               WHERE (:tenant IS NULL OR tenant = :tenant) AND (:kind IS NULL OR kind = :kind)
                   AND (:before IS NULL OR seq < :before)
                   AND (:named IS NULL OR instr(facts, :named) > 0)
               ORDER BY seq DESC LIMIT :limit""",
            {"tenant": tenant, "kind": kind, "before": before, "named": named, "limit": limit},
        )
        return [dict(row) | {"facts": json.loads(row["facts"])} for row in rows]

    def document(self, name: str) -> dict[str, str]:
        """Return the facts recorded of a document, or a file, of this name."""
        return {HASH: self.pseudonym(name)}

    def pseudonym(self, text: str) -> str:
        """Return a keyed hash of a text, which only who has the key can compare with another."""
        return hmac.new(self._key, b"text:" + text.encode("utf-8", "replace"), "sha256").hexdigest()

    def _intact(self, connection: sqlite3.Connection, kept: Sequence[AuditEntry] = ()) -> Head:
        """Return the last row, after one that says so when rows this process knew are gone."""
        last, known = self._last(connection), self._head
        seen = self._read_seen(connection)
        gone = seen > last.seq
        if known.seq:
            query = "SELECT hash FROM audit WHERE seq = ?"
            row = connection.execute(query, (known.seq,)).fetchone()
            pruned = row is None and last.seq > known.seq  # by another process
            gone |= not pruned and (row is None or row["hash"] != known.hash)
        if gone and not self._is_accepted(connection, kept):
            log.error("rows of the audit log are gone; the last one known was %s", known)
            facts = {"known": max(known.seq, seen), "hash": known.hash, "found": last.seq}
            return self._insert(connection, last, AuditEntry(TAMPERED, None, facts, self._now()))
        return last

    def _is_accepted(self, connection: sqlite3.Connection, kept: Sequence[AuditEntry]) -> bool:
        """Tell whether the operator knows that the rows up to the last known one are missing."""
        query = "SELECT facts FROM audit WHERE kind = ?"
        found = [json.loads(row["facts"]) for row in connection.execute(query, (ACCEPTED,))]
        found += [one.facts for one in kept if one.kind == ACCEPTED]
        known = (self._head.seq, self._head.hash)
        return any((one.get("known"), one.get("hash")) == known for one in found)

    def _insert(self, connection: sqlite3.Connection, head: Head, entry: AuditEntry) -> Head:
        row = self._row(head, entry)
        names = ", ".join(f":{name}" for name in FIELDS)
        connection.execute(f"INSERT INTO audit VALUES ({names})", row)
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (SEEN, str(row["seq"])))
        return Head(row["seq"], row["hash"])

    def _row(self, head: Head, entry: AuditEntry) -> dict[str, Any]:
        row: dict[str, Any] = {
            "seq": head.seq + 1,
            "at": moment_text(entry.at),
            "kind": entry.kind,
            "tenant": entry.auth.tenant if entry.auth else "",
            "user": entry.auth.user if entry.auth else "",
            "facts": canonical(entry.facts),
            "previous": head.hash,
        }
        row["hash"] = signed(self._key, row)
        return row

    def _note(self, head: Head) -> None:
        self._head = head
        try:
            write_head(self._folder, head)
        except OSError as error:  # the rows are kept; the next ones note it
            log.error("the last audit row could not be noted: %s", error)

    def _last(self, connection: sqlite3.Connection) -> Head:
        query = "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1"
        row = connection.execute(query).fetchone()
        return Head(row["seq"], row["hash"]) if row else Head()

    def _read_seen(self, connection: sqlite3.Connection) -> int:
        query = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?"
        row = connection.execute(query, (SEEN,)).fetchone()
        return int(row[0]) if row else 0


def staying_rows(connection: sqlite3.Connection, tenant: str | None) -> tuple[int, int]:
    """Count rows of a tenant, or with None of all: all, and those with the words of a question."""
    query = """SELECT count(*), count(*) FILTER (WHERE instr(facts, '"question":"') > 0) FROM audit
               WHERE :tenant IS NULL OR tenant = :tenant"""  # no quote is bare in a text of JSON
    rows, questions = connection.execute(query, {"tenant": tenant}).fetchone()
    return int(rows), int(questions)


def _entry(row: Mapping[str, Any]) -> AuditEntry:
    auth = AuthContext(tenant=row["tenant"], user=row["user"]) if row["tenant"] else None
    at = datetime.datetime.fromisoformat(row["at"])
    return AuditEntry(row["kind"], auth, json.loads(row["facts"]), at)
