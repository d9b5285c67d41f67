"""Finished runs with their steps."""

from __future__ import annotations

import json
import sqlite3
from copy import deepcopy
from typing import Any

from core.auth import AuthContext
from core.errors import CallerError, OperatorError
from core.record_names import ROW
from core.trace import RunRecord, Step
from stores.erasure.redaction import redacted
from stores.erasure.traces import living_passages, phrase_occurs_elsewhere
from stores.runlog.history import Kept, access_of, closed_runs, collection_ids
from stores.sqlite.aliases import is_shown_as, shown_id
from stores.sqlite.database import Database
from stores.sqlite.permissions import Parameters, permission_filter
from stores.sqlite.sums import RUN, sign

# Counted in answers and in health; `carrel doctor` says what to do.
DAMAGED = ("records runs", "records of runs are damaged and withheld; run `carrel doctor`")


class Runs:
    """Keep and find runs; a run is found only by the user who asked.

    A run carries the evidence its user was allowed to see, so no other user may read it. Its user
    reads what they may see at that moment.
    """

    def __init__(self, database: Database) -> None:
        """Use the catalogue's file."""
        self._database = database

    def save(self, run: RunRecord, auth: AuthContext | None = None) -> bool:
        """Keep a finished run, without the text of documents that were deleted meanwhile.

        Returns whether there were any. `auth` is who asked: ids of documents are theirs.
        """
        result, trail = deepcopy(run.result), [step.model_dump() for step in run.trail]
        with self._database.write() as connection:
            staying = living_passages(connection, result)
            gone = _deleted(connection, run, auth, staying)
            reader = auth or AuthContext(tenant=run.tenant, user=run.user)
            numbers = collection_ids(connection, run.tenant, run.collection) if gone else []
            elsewhere = phrase_occurs_elsewhere(
                connection, numbers[0] if len(numbers) == 1 else None, reader
            )
            hidden = redacted(result, trail, gone, elsewhere, staying=staying, own=run.question)
            access = access_of(connection, run.tenant, run.collection, result, trail)
            connection.execute(
                "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
                (
                    run.run_id,
                    run.tenant,
                    run.user,
                    run.collection,
                    run.question,
                    run.pipeline,
                    run.created_at,
                    run.index_version,
                    json.dumps({**result, "access": access}, ensure_ascii=False),
                    json.dumps(trail, ensure_ascii=False),
                ),
            )
            sign(connection, "runs", "r.run_id = ?", run.run_id)
        return hidden is not None

    def load(self, auth: AuthContext, run_id: str) -> RunRecord:
        """Return a run by its id, an unambiguous beginning of it, or "last".

        What its reader may not see now is left out, with a warning that says so.
        """
        connection = self._database.read()
        pattern = "%"
        if run_id != "last":
            pattern = "".join("\\" + c if c in "\\%_" else c for c in run_id) + "%"
        rows = connection.execute(
            f"""SELECT r.rowid, r.sum IS {RUN} AS sound, r.run_id = ? AS exact FROM runs r
                WHERE tenant = ? AND user = ? AND run_id LIKE ? ESCAPE '\\'
                ORDER BY created_at DESC, rowid DESC LIMIT 2""",
            (run_id, auth.tenant, auth.user, pattern),
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
        row = self._row(rows[0]["rowid"])
        result, trail = json.loads(row["result"]), json.loads(row["trail"])
        run = Kept(row["run_id"], row["collection"], result.pop("access"))
        for closed in closed_runs(connection, auth, [run]).values():
            closed.hide(result, trail)
        return _run(row, result, trail)

    def newest(self, auth: AuthContext, limit: int) -> list[RunRecord]:
        """List the newest runs of a user, each with how it ended and nothing that it found.

        Those whose record is damaged are left out.
        """
        rows = self._database.read().execute(
            f"""SELECT r.rowid, r.sum IS {RUN} AS sound FROM runs r
                WHERE tenant = ? AND user = ? ORDER BY created_at DESC, rowid DESC LIMIT ?""",
            (auth.tenant, auth.user, limit),
        )
        found = rows.fetchall()
        if not all(row["sound"] for row in found):
            self._database.condition.report(*DAMAGED)
        kept = [self._row(row["rowid"]) for row in found if row["sound"]]
        return [_run(row, _ended(row), []) for row in kept]

    def _row(self, row_id: int) -> sqlite3.Row:
        query = "SELECT * FROM runs WHERE rowid = ?"
        found: sqlite3.Row = self._database.read().execute(query, (row_id,)).fetchone()
        return found


def _ended(row: sqlite3.Row) -> dict[str, Any]:
    result = json.loads(row["result"])
    return {name: result[name] for name in ("refused", "stop_reason") if name in result}


def _deleted(
    connection: sqlite3.Connection, run: RunRecord, auth: AuthContext | None, staying: set[str]
) -> set[str]:
    """Return the documents of a run's evidence that its collections no longer have.

    A document that the caller is not shown under its id is another one.
    """
    items = run.result.get("evidence", [])
    documents = [item for item in items if item.get("kind") != ROW]  # a count of them is none
    named = {item["document_id"] for item in documents if item["evidence_id"] not in staying}
    for number in collection_ids(connection, run.tenant, run.collection):
        named -= _shown(connection, number, auth, named) if named else set()
    return named


def _shown(
    connection: sqlite3.Connection, collection_id: int, auth: AuthContext | None, named: set[str]
) -> set[str]:
    """Return those of these ids under which a collection shows a document."""
    condition = "d.collection_id = :p_collection"
    parameters: Parameters = {"p_collection": collection_id}
    shown = "d.document_id"
    if auth is not None:
        condition, parameters = permission_filter(auth, collection_id, with_damaged=True)
        shown = shown_id(connection, auth, collection_id)
    query = f"SELECT 1 FROM documents d WHERE {condition} AND {is_shown_as(shown, ':id')}"
    return {
        one
        for one in named
        if connection.execute(query, {**parameters, "id": one}).fetchone() is not None
    }


def _run(row: sqlite3.Row, result: dict[str, Any], trail: list[dict[str, Any]]) -> RunRecord:
    return RunRecord(
        run_id=row["run_id"],
        tenant=row["tenant"],
        user=row["user"],
        collection=row["collection"],
        question=row["question"],
        pipeline=row["pipeline"],
        created_at=row["created_at"],
        index_version=row["index_version"],
        result=result,
        trail=[Step.model_validate(step) for step in trail],
    )
