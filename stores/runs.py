"""Finished runs with their steps."""

from __future__ import annotations

import json
import sqlite3
from copy import deepcopy

from core.errors import CallerError, OperatorError
from core.trace import RunRecord, Step
from stores.database import Database
from stores.erasure.redaction import nowhere, redacted
from stores.erasure.words import said_in
from stores.sums_records import RUN, sign

# Counted in answers and in health; `carrel doctor` says what to do.
DAMAGED = ("records runs", "records of runs are damaged and withheld; run `carrel doctor`")


class Runs:
    """Keep and find runs; a run is found only by the user who asked.

    A run carries the evidence its user was allowed to see, so nobody else may read it.
    """

    def __init__(self, database: Database) -> None:
        """Use the catalogue's file."""
        self._database = database

    def save(self, run: RunRecord) -> bool:
        """Keep a finished run, without the text of documents that were deleted meanwhile.

        Returns whether there were any.
        """
        result, trail = deepcopy(run.result), [step.model_dump() for step in run.trail]
        with self._database.write() as connection:
            gone = _deleted(connection, run)
            elsewhere = said_in(connection, _collection_id(connection, run)) if gone else nowhere
            hidden = redacted(result, trail, gone, elsewhere)
            connection.execute(
                "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
                (
                    run.run_id,
                    run.tenant,
                    run.user,
                    run.collection,
                    hidden.text(run.question) if hidden else run.question,
                    run.pipeline,
                    run.created_at,
                    run.index_version,
                    json.dumps(result, ensure_ascii=False),
                    json.dumps(trail, ensure_ascii=False),
                ),
            )
            sign(connection, "runs", "r.run_id = ?", run.run_id)
        return hidden is not None

    def load(self, tenant: str, user: str, run_id: str) -> RunRecord:
        """Return a run by its id, an unambiguous beginning of it, or "last"."""
        connection = self._database.read()
        pattern = "%"
        if run_id != "last":
            pattern = "".join("\\" + c if c in "\\%_" else c for c in run_id) + "%"
        rows = connection.execute(
            f"""SELECT r.rowid, r.sum IS {RUN} AS sound, r.run_id = ? AS exact FROM runs r
                WHERE tenant = ? AND user = ? AND run_id LIKE ? ESCAPE '\\'
                ORDER BY created_at DESC, rowid DESC LIMIT 2""",
            (run_id, tenant, user, pattern),
        ).fetchall()
        if not rows or (len(rows) > 1 and run_id != "last" and not rows[0]["exact"]):
            raise CallerError(
                "a run is named by its id, the beginning of one id, or 'last'",
                value=run_id,
                hint="`carrel trace` without a run lists the newest",
            )
        if not rows[0]["sound"]:
            self._database.condition.report(*DAMAGED)
            raise OperatorError(
                "the record of this run is damaged in the catalogue",
                value=run_id,
                hint="restore a backup, or ask again",
            )
        return self._run(rows[0]["rowid"])

    def newest(self, tenant: str, user: str, limit: int) -> list[RunRecord]:
        """List the newest runs of a user, without those whose record is damaged."""
        rows = self._database.read().execute(
            f"""SELECT r.rowid, r.sum IS {RUN} AS sound FROM runs r
                WHERE tenant = ? AND user = ? ORDER BY created_at DESC, rowid DESC LIMIT ?""",
            (tenant, user, limit),
        )
        found = rows.fetchall()
        if not all(row["sound"] for row in found):
            self._database.condition.report(*DAMAGED)
        return [self._run(row["rowid"]) for row in found if row["sound"]]

    def _run(self, row_id: int) -> RunRecord:
        query = "SELECT * FROM runs WHERE rowid = ?"
        return _run(self._database.read().execute(query, (row_id,)).fetchone())


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


def _collection_id(connection: sqlite3.Connection, run: RunRecord) -> int | None:
    row = connection.execute(
        "SELECT id FROM collections WHERE tenant = ? AND name = ?", (run.tenant, run.collection)
    ).fetchone()
    return None if row is None else int(row[0])


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
