"""Uploads, ingests, trees and the like: running ones survive a restart, ended ones stay listed."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

from core.auth import AuthContext
from stores.coordination import JobLease, SharedCoordination
from stores.sqlite.database import CataloguePart, Database
from stores.sqlite.sums import JOB, sign

Kind = Literal["upload", "ingest", "deletion", "tree", "sync"]
State = Literal["waiting", "running", "done", "failed", "cancelled"]
OPEN: tuple[State, ...] = ("waiting", "running")
# A damaged job is none: the roles of its document may be others than it was given.
SOUND = f"j.sum IS {JOB}"


@dataclass(eq=False)
class JobRow:
    """Hold one job; `name` is that of the file or folder, or of the synced source, else "".

    `roles` are who may read an uploaded document, empty for the whole tenant; `bytes` its size;
    `attempts` counts how often it was begun; `caller` is who sent it (see `sender`).
    Times are ISO 8601 in UTC.
    """

    id: str
    kind: Kind
    tenant: str
    user: str
    collection: str
    name: str
    roles: frozenset[str] = frozenset()
    bytes: int = 0
    state: State = "waiting"
    error: str = ""
    attempts: int = 0
    documents: int = 0
    chunks: int = 0
    notes: list[str] = field(default_factory=list)
    caller: str = ""
    created_at: str = ""
    updated_at: str = ""

    def sent_by(self, auth: AuthContext, key: str, **work: object) -> None:
        """Note who sent it, with which key, "" for another proof, and what else it is made of."""
        self.caller = json.dumps({"auth": auth.model_dump(mode="json"), "key": key, **work})

    @property
    def work(self) -> dict[str, Any]:
        """Return what else it is made of; paths of an ingest, until it ends."""
        found: dict[str, Any] = json.loads(self.caller)
        return found

    def sender(self) -> tuple[AuthContext, str]:
        """Return who sent it, and the id of their key, "" for none; nobody sends a deletion."""
        found: dict[str, Any] = json.loads(self.caller)
        return AuthContext.model_validate(found["auth"]), str(found["key"])

    def is_open_to(self, auth: AuthContext) -> bool:
        """Tell whether somebody has the roles it was sent with: its name may be of what is closed.

        A deletion names nothing.
        """
        return self.kind == "deletion" or auth.roles >= self.sender()[0].roles

    @property
    def seconds(self) -> float:
        """Return the time from when it was sent to its last change."""
        began, changed = map(datetime.fromisoformat, (self.created_at, self.updated_at))
        return round((changed - began).total_seconds(), 3)

    @property
    def ended(self) -> bool:
        """Tell whether nothing more will happen to it."""
        return self.state not in OPEN


OPERATOR = "command.line"  # whose jobs are ingests, and syncs of sources that no caller added


def new_ingest(
    tenant: str,
    collection: str,
    paths: Sequence[Path],
    readers: frozenset[str],
    profile: dict[str, Any] | None,
    *,
    prune: bool,
) -> JobRow:
    """Return the job of ingesting paths; `profile` is what its collection gets, None to keep it."""
    name = paths[0].absolute().name if len(paths) == 1 else ""
    row = JobRow(uuid.uuid4().hex[:16], "ingest", tenant, OPERATOR, collection, name, readers)
    where = [str(path.absolute()) for path in paths]
    auth = AuthContext(tenant=tenant, user=OPERATOR, roles=readers)
    row.sent_by(auth, "", paths=where, prune=prune, profile=profile)
    return row


COLUMNS = [one.name for one in fields(JobRow) if one.name not in ("created_at", "updated_at")]
CHANGING = (
    *("bytes", "state", "error", "attempts", "documents", "chunks", "notes", "caller"),
    "updated_at",
)


class JobRows(CataloguePart):
    """Keep and find jobs; of a tenant's ended ones the newest `kept` stay, of a source's one."""

    def __init__(self, database: Database, *, kept: int) -> None:
        super().__init__(database)
        self._kept = kept

    def save(self, row: JobRow) -> None:
        """Insert a job, or write what has become of it; its times are filled in.

        One that was erased meanwhile does not come back.
        """
        values = [_to_column(getattr(row, name)) for name in COLUMNS]
        marks = ", ".join("?" * len(COLUMNS))
        changed = ", ".join(f"{name} = excluded.{name}" for name in CHANGING)
        with self._database.write() as connection:
            known = "SELECT 1 FROM jobs WHERE id = ?"
            if row.created_at and connection.execute(known, (row.id,)).fetchone() is None:
                return
            times = connection.execute(
                f"""INSERT INTO jobs ({", ".join(COLUMNS)}, created_at, updated_at)
                    VALUES ({marks}, strftime('%Y-%m-%dT%H:%M:%fZ'),
                            strftime('%Y-%m-%dT%H:%M:%fZ'))
                    ON CONFLICT (id) DO UPDATE SET {changed} RETURNING created_at, updated_at""",
                values,
            ).fetchone()
            row.created_at, row.updated_at = times
            sign(connection, "jobs", "j.id = ?", row.id)
            if row.ended:
                connection.execute(
                    """DELETE FROM jobs WHERE kind = 'sync' AND id <> ? AND tenant = ? AND user = ?
                       AND name = ? AND state NOT IN ('waiting', 'running')""",
                    (row.id, row.tenant, row.user, row.name if row.kind == "sync" else None),
                )
                connection.execute(
                    """DELETE FROM jobs WHERE number IN (SELECT number FROM jobs
                           WHERE tenant = ? AND state NOT IN ('waiting', 'running')
                           ORDER BY number DESC LIMIT -1 OFFSET ?)""",
                    (row.tenant, self._kept),
                )

    def find(self, job_id: str) -> JobRow | None:
        """Return the job of this id, None when there is none."""
        row = self._one(f"SELECT * FROM jobs j WHERE id = ? AND {SOUND}", (job_id,))
        return _row(row) if row else None

    def counts(self, tenant: str, user: str | None) -> dict[str, int]:
        """Count the jobs of a user, or of the whole tenant, by their state."""
        rows = self._all(
            "SELECT state, count(*) FROM jobs j WHERE tenant = :t AND (:u IS NULL OR user = :u)"
            f" AND {SOUND} GROUP BY state",
            {"t": tenant, "u": user},
        )
        return dict.fromkeys(get_args(State), 0) | {row[0]: row[1] for row in rows}

    def newest(self, tenant: str, user: str | None, limit: int) -> list[JobRow]:
        """List the newest jobs of a user, or of the whole tenant, the newest first."""
        rows = self._all(
            f"SELECT * FROM jobs j WHERE tenant = :t AND (:u IS NULL OR user = :u) AND {SOUND}"
            " ORDER BY number DESC LIMIT :limit",
            {"t": tenant, "u": user, "limit": limit},
        )
        return [_row(row) for row in rows]

    def leases(self, rows: Sequence[JobRow]) -> dict[str, JobLease]:
        """Return how far jobs are, by id, as far as other processes tell."""
        shared = self._database.coordination
        found = [row.id for row in rows if not row.ended]
        return shared.leases(found) if isinstance(shared, SharedCoordination) else {}

    def cancel(self, row: JobRow) -> None:
        """End a job; one that a process works on ends at its next piece of work."""
        shared, worker = self._database.coordination, uuid.uuid4().hex
        if isinstance(shared, SharedCoordination):
            if shared.claim(worker, syncs=False, job=row.id) is None:
                shared.cancel(row.id)
                return
        row.state = "cancelled"
        self.save(row)
        if isinstance(shared, SharedCoordination):
            shared.drop(worker, row.id)

    def open(self) -> list[JobRow]:
        """List what waits or was at work when the last server ended, the oldest first."""
        rows = self._all(
            "SELECT * FROM jobs j WHERE state IN ('waiting', 'running')"
            f" AND {SOUND} ORDER BY number"
        )
        return [_row(row) for row in rows]


def _to_column(value: object) -> Any:  # noqa: ANN401 - whatever SQLite takes
    if isinstance(value, frozenset):
        value = sorted(value)
    if isinstance(value, list):
        value = json.dumps(value, ensure_ascii=False)
    # The name of a file may be no text.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _row(row: sqlite3.Row) -> JobRow:
    values = {one.name: row[one.name] for one in fields(JobRow)}
    values["roles"] = frozenset(json.loads(values["roles"]))
    values["notes"] = json.loads(values["notes"])
    return JobRow(**values)
