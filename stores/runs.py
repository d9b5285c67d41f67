"""Finished runs with their steps."""

from __future__ import annotations

import json
import sqlite3
from copy import deepcopy

from core.errors import CallerError
from core.trace import RunRecord, Step
from stores.database import Database
from stores.redaction import redacted


class Runs:
    """Keep and find runs; a run is found only by the user who asked.

    A run carries the evidence its user was allowed to see, so nobody else may read it.
    """

    def __init__(self, database: Database) -> None:
        """Use the catalogue's file."""
        self._database = database

    def save(self, run: RunRecord) -> None:
        """Keep a finished run, without the text of documents that were deleted meanwhile."""
        result, trail = deepcopy(run.result), [step.model_dump() for step in run.trail]
        with self._database.write() as connection:
            redacted(result, trail, _deleted(connection, run))
            connection.execute(
                "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    run.run_id,
                    run.tenant,
                    run.user,
                    run.collection,
                    run.question,
                    run.pipeline,
                    run.created_at,
                    run.index_version,
                    json.dumps(result, ensure_ascii=False),
                    json.dumps(trail, ensure_ascii=False),
                ),
            )

    def load(self, tenant: str, user: str, run_id: str) -> RunRecord:
        """Return a run by its id, an unambiguous beginning of it, or "last"."""
        connection = self._database.read()
        pattern = "%"
        if run_id != "last":
            pattern = "".join("\\" + c if c in "\\%_" else c for c in run_id) + "%"
        rows = connection.execute(
            "SELECT * FROM runs WHERE tenant = ? AND user = ? AND run_id LIKE ? ESCAPE '\\'"
            " ORDER BY created_at DESC, rowid DESC LIMIT 2",
            (tenant, user, pattern),
        ).fetchall()
        if not rows or (len(rows) > 1 and run_id not in ("last", rows[0]["run_id"])):
            raise CallerError(
                "a run is named by its id, the beginning of one id, or 'last'",
                value=run_id,
                hint="`carrel trace` without a run lists the newest",
            )
        return _run(rows[0])

    def newest(self, tenant: str, user: str, limit: int) -> list[RunRecord]:
        """List the newest runs of a user."""
        rows = self._database.read().execute(
            "SELECT * FROM runs WHERE tenant = ? AND user = ?"
            " ORDER BY created_at DESC, rowid DESC LIMIT ?",
            (tenant, user, limit),
        )
        return [_run(row) for row in rows]

    def redact(self, tenant: str, collection: str, documents: set[str]) -> int:
        """Take the text of deleted documents out of all users' runs; return how many had any."""
        found = 0
        for document_id in documents:
            # The id stands in the result as JSON writes it.
            rows = self._database.read().execute(
                "SELECT run_id FROM runs WHERE tenant = ? AND collection = ?"
                " AND instr(result, ?) > 0",
                (tenant, collection, json.dumps(document_id, ensure_ascii=False)),
            )
            for (run_id,) in rows.fetchall():
                found += self._redact(run_id, {document_id})
        return found

    def _redact(self, run_id: str, documents: set[str]) -> bool:
        with self._database.write() as connection:
            row = connection.execute(
                "SELECT result, trail FROM runs WHERE run_id = ?", (run_id,)
            ).fetchone()
            if row is None:
                return False
            result, trail = json.loads(row["result"]), json.loads(row["trail"])
            if not redacted(result, trail, documents):
                return False
            connection.execute(
                "UPDATE runs SET result = ?, trail = ? WHERE run_id = ?",
                (
                    json.dumps(result, ensure_ascii=False),
                    json.dumps(trail, ensure_ascii=False),
                    run_id,
                ),
            )
        return True


def _deleted(connection: sqlite3.Connection, run: RunRecord) -> set[str]:
    """Return the documents of a run's evidence that its collection no longer has."""
    named = {item["document_id"] for item in run.result.get("evidence", [])}
    gone = set()
    for document_id in named:
        row = connection.execute(
            """SELECT 1 FROM documents d JOIN collections c ON c.id = d.collection_id
               WHERE c.tenant = ? AND c.name = ? AND d.document_id = ?""",
            (run.tenant, run.collection, document_id),
        ).fetchone()
        if row is None:
            gone.add(document_id)
    return gone


def _run(row: sqlite3.Row) -> RunRecord:
    return RunRecord(
        run_id=row["run_id"],
        tenant=row["tenant"],
        user=row["user"],
        collection=row["collection"],
        question=row["question"],
        pipeline=row["pipeline"],
        created_at=row["created_at"],
        index_version=row["index_version"],
        result=json.loads(row["result"]),
        trail=[Step.model_validate(step) for step in json.loads(row["trail"])],
    )
