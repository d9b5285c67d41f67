"""Finished runs with their steps, and what readers thought of them and of documents."""

from __future__ import annotations

import datetime
import json
import sqlite3
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, Literal, NamedTuple

from core.auth import AuthContext
from core.errors import AbsentError, CallerError, OperatorError
from core.metadata import ROW
from core.question import names_of
from core.recall import NOTE
from core.trace import RunRecord, Step
from stores.erasure.redaction import NOTE_NOTICE, NOTICE, redacted
from stores.erasure.rewriting import phrase_occurs_elsewhere
from stores.erasure.traces import living_passages
from stores.ports import Catalogue
from stores.runlog.history import KEPT, access_of, closed_runs, collection_ids, kept
from stores.sqlite.database import CataloguePart
from stores.sqlite.permissions import Parameters, is_shown_as, permission_filter, shown_id
from stores.sqlite.sums import OPINION, RUN, sign

# Counted in answers and in health; `carrel doctor` says what to do.
DAMAGED = ("records runs", "records of runs are damaged and withheld; run `carrel doctor`")


_COLUMNS = (
    *("run_id", "tenant", "user", "collection", "question", "pipeline", "created_at"),
    "index_version",
)
_RUN = "SELECT * FROM runs WHERE rowid = ?"
_KEPT_RUN = f"SELECT r.*, {KEPT} FROM runs r WHERE r.rowid = ?"


class Runs(CataloguePart):
    """Keep and find runs; a run is found only by the user who asked.

    A run carries the evidence its user was allowed to see, so no other user may read it. Its user
    reads what they may see at that moment.
    """

    def save(self, run: RunRecord, auth: AuthContext | None = None) -> bool:
        result, trail = deepcopy(run.result), [step.model_dump() for step in run.trail]
        with self._database.write() as connection:
            staying = living_passages(connection, result)
            gone = _find_deleted(connection, run, auth, staying)
            reader = auth or AuthContext(tenant=run.tenant, user=run.user)
            numbers = collection_ids(connection, run.tenant, run.collection) if gone else []
            elsewhere = phrase_occurs_elsewhere(
                connection, numbers[0] if len(numbers) == 1 else None, reader
            )
            notes = _find_deleted_notes(connection, run)
            hidden = redacted(
                *(result, trail, gone | notes, elsewhere),
                staying=staying,
                own=run.question,
                notice=NOTICE if gone else NOTE_NOTICE,
            )
            result["recording"] = {"erased": True} if hidden else run.recording
            result["access"] = access_of(connection, reader, run.collection, result, trail)
            stored = [json.dumps(one, ensure_ascii=False) for one in (result, trail)]
            connection.execute(
                "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
                (*(getattr(run, name) for name in _COLUMNS), *stored),
            )
            sign(connection, "runs", "r.run_id = ?", run.run_id)
        return hidden is not None

    def load(self, auth: AuthContext, run_id: str) -> RunRecord:
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
        row = self._one(_KEPT_RUN, (rows[0]["rowid"],))
        result, trail = json.loads(row["result"]), json.loads(row["trail"])
        recording = result.pop("recording", {})
        result.pop("access")
        for closed in closed_runs(connection, auth, [kept(row)]).values():
            closed.hide(result, trail)
        return _run(row, result, trail).model_copy(update={"recording": recording})

    def newest(self, auth: AuthContext, limit: int) -> list[RunRecord]:
        found = self._all(
            f"""SELECT r.rowid, r.sum IS {RUN} AS sound FROM runs r
                WHERE tenant = ? AND user = ? ORDER BY created_at DESC, rowid DESC LIMIT ?""",
            (auth.tenant, auth.user, limit),
        )
        if not all(row["sound"] for row in found):
            self._database.condition.report(*DAMAGED)
        kept = [self._one(_RUN, (row["rowid"],)) for row in found if row["sound"]]
        return [_run(row, _read_ending(row), []) for row in kept]


def _read_ending(row: sqlite3.Row) -> dict[str, Any]:
    result = json.loads(row["result"])
    return {name: result[name] for name in ("refused", "stop_reason") if name in result}


def _find_deleted(
    connection: sqlite3.Connection, run: RunRecord, auth: AuthContext | None, staying: set[str]
) -> set[str]:
    """Return the documents of a run's evidence that its collections no longer have.

    A document that the caller is not shown under its id is another one.
    """
    items = run.result.get("evidence", [])
    documents = [item for item in items if item.get("kind") not in (ROW, NOTE)]  # of no document
    named = {item["document_id"] for item in documents if item["evidence_id"] not in staying}
    for number in collection_ids(connection, run.tenant, run.collection):
        named -= _find_shown(connection, number, auth, named) if named else set()
    return named


def _find_deleted_notes(connection: sqlite3.Connection, run: RunRecord) -> set[str]:
    """Return the notes of a run's evidence that its user has no more."""
    items = run.result.get("evidence", [])
    rows = connection.execute(
        """SELECT value FROM json_each(?) EXCEPT SELECT note_id FROM notes
           WHERE tenant = ? AND owner = ?""",
        (
            json.dumps([one["evidence_id"] for one in items if one.get("kind") == NOTE]),
            *(run.tenant, run.user),
        ),
    )
    return {row[0] for row in rows}


def _find_shown(
    connection: sqlite3.Connection, collection_id: int, auth: AuthContext | None, named: set[str]
) -> set[str]:
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
    steps = [Step.model_validate(step) for step in trail]
    return RunRecord(**{name: row[name] for name in _COLUMNS}, result=result, trail=steps)


Rating = Literal["up", "down"]
PAGE = 500  # opinions of one export read at once; chosen, not measured
OWN = ("id", "access")  # columns that are not exported


class FeedbackNotes(CataloguePart):
    """Keep one opinion for each run and user; a later one replaces it."""

    def save_feedback(
        self, tenant: str, user: str, run_id: str, rating: Rating, comment: str
    ) -> None:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        with self._database.write() as connection:
            connection.execute(
                """INSERT INTO feedback (run_id, tenant, user, rating, comment, created_at)
                   VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (run_id, tenant, user) DO UPDATE
                   SET rating = excluded.rating, comment = excluded.comment,
                       created_at = excluded.created_at""",
                (run_id, tenant, user, rating, comment, now),
            )
            which = "(n.run_id, n.tenant, n.user) = (?, ?, ?)"
            sign(connection, "feedback", which, run_id, tenant, user)

    def export_feedback(
        self, auth: AuthContext, *, everyone: bool = False
    ) -> Iterator[dict[str, Any]]:
        last = 0
        while rows := self._page(auth.tenant, None if everyone else auth.user, last):
            last = rows[-1]["id"]
            runs = [kept(row) for row in rows if row["question"] is not None]
            closed = closed_runs(self._database.read(), auth, runs)
            for row in rows:
                found = {name: row[name] for name in row.keys() if name not in OWN}  # noqa: SIM118
                if row["run_id"] in closed:
                    query = "SELECT result FROM runs WHERE run_id = ?"
                    result = json.loads(self._value(query, (row["run_id"],)))
                    found["answer"] = closed[row["run_id"]].answer(result)
                yield found

    def _page(self, tenant: str, user: str | None, after: int) -> list[sqlite3.Row]:
        return self._all(
            f"""SELECT n.id, n.run_id, n.user, n.rating, n.comment, n.created_at, r.question,
                   {KEPT}, json_extract(r.result, '$.answer') AS answer
               FROM feedback n LEFT JOIN runs r ON r.run_id = n.run_id
                   AND r.tenant = n.tenant AND r.user = n.user AND r.sum IS {RUN}
               WHERE n.tenant = :tenant AND (:user IS NULL OR n.user = :user)
                   AND instr(n.run_id, ':') = 0  -- no opinions on documents
                   AND n.id > :after AND n.sum IS {OPINION} ORDER BY n.id LIMIT :page""",
            {"tenant": tenant, "user": user, "after": after, "page": PAGE},
        )


# What a user thinks of a document or does with it. Before its key, where opinions on runs have the
# id of one, stands what it is, so that each is kept once for each user and document.
DocumentOpinion = Literal["up", "down", "viewed", "adopted"]
PREFIXES: dict[str, str] = {
    "up": "document:", "down": "document:", "viewed": "viewed:", "adopted": "adopted:",
}  # fmt: skip
LISTED = "listed:"
_KIND = "substr(n.run_id, 1, instr(n.run_id, ':') - 1)"
_OPINION = f"CASE {_KIND} WHEN 'document' THEN n.rating ELSE {_KIND} END"
_OF_DOCUMENT = "d.key = substr(n.run_id, instr(n.run_id, ':') + 1)"
_PASSAGE = """(SELECT c.chunk_id FROM chunks c WHERE c.document = d.id
    ORDER BY c.kind = 'record', c.ordinal LIMIT 1)"""


class DocumentRating(NamedTuple):
    """Hold what a user thinks of a document; `passage` is the id of its first text."""

    key: str
    document_id: str
    title: str
    rating: DocumentOpinion
    created_at: str
    passage: str

    def describe(self) -> dict[str, str]:
        """Return it as its user exports it."""
        return {name: str(getattr(self, name)) for name in self._fields[1:5]}


class Ratings(FeedbackNotes):
    """Keep one opinion for each user and document; a later one replaces it."""

    def rate_document(
        self, auth: AuthContext, collection_id: int, document_id: str, rating: DocumentOpinion
    ) -> None:
        condition, parameters = permission_filter(auth, collection_id)
        shown = shown_id(self._database.read(), auth, collection_id)
        row = self._one(
            f"SELECT d.key FROM documents d WHERE {condition} AND {is_shown_as(shown, ':id')}",
            {**parameters, "id": document_id},
        )
        if row is None:
            raise AbsentError("there is no such document in this collection", value=document_id)
        kept: Rating = "down" if rating == "down" else "up"
        self.save_feedback(auth.tenant, auth.user, f"{PREFIXES[rating]}{row['key']}", kept, "")

    def note_listed(self, auth: AuthContext, keys: Sequence[str]) -> None:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        with self._database.write() as connection:
            for key in keys:
                added = connection.execute(
                    """INSERT OR IGNORE INTO feedback (run_id, tenant, user, rating, comment,
                       created_at) VALUES (?, ?, ?, 'up', '', ?)""",
                    (f"{LISTED}{key}", auth.tenant, auth.user, now),
                ).rowcount
                if added:
                    which = "(n.run_id, n.tenant, n.user) = (?, ?, ?)"
                    sign(connection, "feedback", which, f"{LISTED}{key}", auth.tenant, auth.user)

    def list_ratings(
        self, auth: AuthContext, collection_id: int, most: int = -1
    ) -> list[DocumentRating]:
        condition, parameters = permission_filter(auth.rights, collection_id)
        shown = shown_id(self._database.read(), auth, collection_id)
        rows = self._all(
            f"""SELECT d.key, {shown} AS document_id, d.title, {_OPINION} AS rating,
                    n.created_at, {_PASSAGE} AS passage
                FROM feedback n CROSS JOIN documents d ON {_OF_DOCUMENT}
                WHERE n.tenant = :own_tenant AND n.user = :own_user AND n.sum IS {OPINION}
                    AND instr(n.run_id, ':') > 0 AND {_KIND} <> 'listed' AND {condition}
                ORDER BY n.created_at DESC, n.id DESC LIMIT :most""",
            {**parameters, "own_tenant": auth.tenant, "own_user": auth.user, "most": most},
        )
        return [DocumentRating(*row) for row in rows if row["passage"] is not None]

    def delete_ratings(self, auth: AuthContext) -> int:
        own = "DELETE FROM feedback WHERE tenant = ? AND user = ? AND instr(run_id, ':') > 0"
        with self._database.write() as connection:
            listed = f"{own} AND run_id LIKE '{LISTED}%'"
            connection.execute(listed, (auth.tenant, auth.user))
            return connection.execute(own, (auth.tenant, auth.user)).rowcount

    def opinions_of_all(self, tenant: str, collection_id: int) -> list[tuple[str, str, str]]:
        rows = self._all(
            f"""SELECT n.user, {_PASSAGE} AS passage, {_OPINION} AS rating
                FROM feedback n CROSS JOIN documents d ON {_OF_DOCUMENT}
                WHERE n.tenant = ? AND n.sum IS {OPINION} AND instr(n.run_id, ':') > 0
                    AND d.collection_id = ?
                ORDER BY n.user, n.id""",
            (tenant, collection_id),
        )
        return [tuple(row) for row in rows if row["passage"] is not None]

    def adoption(self, tenant: str) -> dict[str, int]:
        def also(kind: str) -> str:
            return f"""EXISTS (SELECT 1 FROM feedback m WHERE m.tenant = n.tenant
                AND m.user = n.user AND m.run_id = '{kind}:' || substr(n.run_id, {len(LISTED) + 1})
                AND m.rating = 'up')"""

        row = self._one(
            f"""SELECT count(DISTINCT n.user) AS users, count(*) AS listed,
                    count(*) FILTER (WHERE {also("viewed")}) AS viewed,
                    count(*) FILTER (WHERE {also("adopted")}) AS adopted,
                    count(*) FILTER (WHERE {also("document")}) AS liked
                FROM feedback n WHERE n.tenant = ? AND n.run_id LIKE '{LISTED}%'
                    AND n.sum IS {OPINION}""",
            (tenant,),
        )
        return dict(row)


def changed_since(run: RunRecord, catalogue: Catalogue, auth: AuthContext) -> list[str]:
    """Say how many passages of a run have another text by now, or are gone; nothing for none.

    Nor of a run whose details are withheld from the caller.
    """
    if run.result.get("withheld") or catalogue.index_version() == run.index_version:
        return []
    kept = {one.chunk_id: one.text for one in run.evidence if one.kind != ROW}
    for collection in catalogue.collections(auth.tenant):
        if collection.name in names_of(run.collection):
            for name, one in catalogue.evidence(auth, collection.id, list(kept)).items():
                if kept.get(name) == one.text:
                    del kept[name]
    if not kept:
        return []
    return [
        f"the documents have changed since: passages that read otherwise or are gone: {len(kept)}"
    ]
