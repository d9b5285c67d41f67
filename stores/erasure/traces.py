"""Take documents out of what was made of them: runs, conversations and jobs."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Any

from core.auth import AuthContext
from core.metadata import ROW
from stores.erasure.documents import Gone, upload_of
from stores.erasure.notes import OF_DOCUMENTS, redact_notes
from stores.erasure.redaction import Elsewhere, Hidden, hide_repeated, literal_names, redacted
from stores.erasure.rewriting import (
    phrase_occurs_elsewhere,
    redact_conversation,
    redact_conversations,
    save_redacted,
    to_json,
    typed_in,
)
from stores.runlog.history import forget_documents
from stores.sqlite.catalogue import Collection
from stores.sqlite.sums import TRACES, damaged_rows, drop_damaged, sign

# A run or a conversation of several collections has their names joined by commas (core.scope).
# Few names are looked for as they are written, before a run is read as JSON.
FEW = 20  # chosen, not measured
FOUND = """SELECT run_id, question, result, trail FROM runs r
    WHERE tenant = :tenant AND instr(',' || r.collection || ',', ',' || :collection || ',') > 0
    AND ((:written IS NULL OR EXISTS (SELECT 1 FROM json_each(:written) w
                                     WHERE instr(r.result, w.value) > 0))
        AND EXISTS (SELECT 1 FROM json_each(r.result, '$.evidence') e
                    WHERE json_extract(e.value, '$.document_id')
                        IN (SELECT value FROM json_each(:documents)))
        OR instr(r.result, '"clarification": {') > 0
        OR instr(r.result, '"clarification":{') > 0)"""

ACCESS = """SELECT run_id, json_extract(result, '$.access') AS access FROM runs r
    WHERE tenant = :tenant AND instr(',' || r.collection || ',', ',' || :collection || ',') > 0
    AND (:keys IS NULL OR EXISTS (
        SELECT 1 FROM json_each(:keys) k WHERE instr(r.result, k.value) > 0))"""

HISTORY = """(instr(r.result, '"history": true') > 0 OR instr(r.result, '"history":true') > 0)
    AND CAST(json_extract(r.result, '$.recording.history') AS INTEGER) = 1"""

NAMED_JOBS = """SELECT id, user, name FROM jobs WHERE tenant = :t AND collection = :c
    AND name IN (SELECT value FROM json_each(:names))"""
# Files that still have documents and that their writers gave one of these names.
STAYING_FILES = """SELECT f.relative, f.path, coalesce(k.alias, f.relative) AS name FROM files f
    LEFT JOIN aliases k ON k.collection_id = f.collection_id AND k.kind = 'file'
        AND k.stored = f.relative
    WHERE f.collection_id = :id AND (f.relative IN (SELECT value FROM json_each(:names))
        OR f.relative IN (SELECT stored FROM aliases WHERE collection_id = :id AND kind = 'file'
            AND alias IN (SELECT value FROM json_each(:names))))
    AND EXISTS (SELECT 1 FROM documents d
        WHERE d.collection_id = f.collection_id AND d.file = f.relative)"""


def redact_traces(
    connection: sqlite3.Connection,
    collection: Collection,
    documents: Sequence[Gone],
    auth: AuthContext | None = None,
) -> Counter[str]:
    """Redact, within the caller's transaction, what deleted documents have left behind.

    `auth` is who deletes them, None for the operator.

    A conversation with a redacted run goes on from nothing: what the graph knew of it goes. What
    people typed stays as it is: questions, replies, titles, comments.
    """
    ids = {name for one in documents for name in one.ids}
    if any(one.is_record for one in documents):
        ids.add(ROW)  # what was counted of its collection may count it
    names = literal_names(name for one in documents for name in one.names)
    elsewhere = phrase_occurs_elsewhere(
        connection, collection.id, auth or AuthContext(tenant=collection.tenant)
    )
    given = {"tenant": collection.tenant, "collection": collection.name}
    given["documents"] = json.dumps(sorted(ids))
    notes, touched = redact_notes(connection, OF_DOCUMENTS, given)
    _drop_damaged(connection)
    for run_id, hidden in _redact_runs(connection, collection, ids, names, elsewhere).items():
        touched[run_id].append(hidden)
    _forget_histories(connection, collection)
    redacted_ones = redact_conversations(connection, touched)
    escaped = {to_json(name)[1:-1] for name in names}  # as JSON writes them
    of_names = Hidden(literals=names | escaped)
    offering = _offering(connection, collection, of_names) - redacted_ones.keys()
    for name in offering:
        redact_conversation(connection, name, [of_names])
    counts: Counter[str] = Counter(runs=len(touched), notes=notes)
    counts["conversations"] = len(redacted_ones) + len(offering)
    _forget_access(connection, collection, {one.key for one in documents})
    counts["jobs"] = _forget_jobs(connection, collection, documents, auth)
    return counts


def _drop_damaged(connection: sqlite3.Connection) -> None:
    """Delete damaged rows: it is unknown whether they speak of these documents."""
    connection.execute(
        "INSERT OR IGNORE INTO erasure_leftovers SELECT 'thread', v.id FROM"
        f" {damaged_rows('conversations')}"
    )
    drop_damaged(connection, *TRACES)


def _redact_runs(
    connection: sqlite3.Connection,
    collection: Collection,
    ids: set[str],
    names: set[str],
    elsewhere: Elsewhere,
) -> dict[str, Hidden]:
    touched: dict[str, Hidden] = {}
    given = {
        "tenant": collection.tenant,
        "collection": collection.name,
        "documents": json.dumps(sorted(ids)),
        "written": to_json([to_json(one) for one in ids]) if len(ids) <= FEW else None,
    }
    for row in connection.execute(FOUND, given).fetchall():
        result, trail = json.loads(row["result"]), json.loads(row["trail"])
        staying = living_passages(connection, result)
        own = typed_in(connection, row["run_id"], row["question"])
        hidden = redacted(result, trail, ids, elsewhere, names, staying, own)
        if hidden is None:
            of_names = Hidden(literals=names, own=own)
            if not hide_repeated(result, trail, of_names):
                continue
            hidden = of_names
        touched[row["run_id"]] = hidden
        save_redacted(connection, row["run_id"], result, trail)
    return touched


def _forget_histories(connection: sqlite3.Connection, collection: Collection) -> None:
    """Erase the recordings that have earlier answers, which may repeat any document."""
    which = f"""r.tenant = ? AND instr(',' || r.collection || ',', ',' || ? || ',') > 0
        AND {HISTORY}"""
    given = (collection.tenant, collection.name)
    found = connection.execute(f"SELECT r.run_id FROM runs r WHERE {which}", given).fetchall()
    for (run_id,) in found:
        connection.execute(
            """UPDATE runs SET result = json_set(result, '$.recording', json('{"erased": true}'))
               WHERE run_id = ?""",
            (run_id,),
        )
        sign(connection, "runs", "r.run_id = ?", run_id)


def _forget_access(connection: sqlite3.Connection, collection: Collection, keys: set[str]) -> None:
    """Forget who could read these documents, in their runs and those of later turns."""
    given = {
        "tenant": collection.tenant,
        "collection": collection.name,
        "keys": json.dumps(sorted(keys)) if len(keys) <= FEW else None,
    }
    for row in connection.execute(ACCESS, given).fetchall():
        access = json.loads(row["access"])
        if forget_documents(access, keys):
            connection.execute(
                "UPDATE runs SET result = json_set(result, '$.access', json(?)) WHERE run_id = ?",
                (to_json(access), row["run_id"]),
            )
            sign(connection, "runs", "r.run_id = ?", row["run_id"])


def living_passages(connection: sqlite3.Connection, result: dict[str, Any]) -> set[str]:
    """Return the ids of those passages of a run's evidence that are in the catalogue."""
    named = [one["evidence_id"] for one in result.get("evidence", [])]
    rows = connection.execute(
        "SELECT chunk_id FROM chunks WHERE chunk_id IN (SELECT value FROM json_each(?))",
        (json.dumps(named),),
    )
    return {row[0] for row in rows}


def _offering(connection: sqlite3.Connection, collection: Collection, of_names: Hidden) -> set[str]:
    rows = connection.execute(
        """SELECT t.conversation, t.clarification || c.waiting AS asked
           FROM conversation_turns t JOIN conversations c ON c.id = t.conversation
           WHERE c.tenant = ? AND instr(',' || c.collection || ',', ',' || ? || ',') > 0
           AND t.clarification || c.waiting <> ''""",
        (collection.tenant, collection.name),
    )
    return {row["conversation"] for row in rows if of_names.text(row["asked"]) != row["asked"]}


def _forget_jobs(
    connection: sqlite3.Connection,
    collection: Collection,
    documents: Sequence[Gone],
    auth: AuthContext | None,
) -> int:
    """Take the names of uploads out of the list of jobs, unless their file has other documents.

    Jobs of who deletes and of who sent the file lose the name, whatever other file has it. Those of
    others lose it when the document was open or the operator deletes it, and no file of this name
    that they sent stays. So no list of jobs depends on a hidden document.
    """
    given = {
        "t": collection.tenant,
        "c": collection.name,
        "id": collection.id,
        "names": json.dumps(sorted({one.given_file for one in documents})),
    }
    stay = connection.execute(STAYING_FILES, given).fetchall()
    kept = {row["relative"] for row in stay}
    gone = [one for one in documents if one.file not in kept]
    jobs = connection.execute(NAMED_JOBS, given).fetchall()
    users = {row["id"]: row["user"] for row in jobs}
    lose = {(one.given_file, users.get(one.upload)) for one in gone}
    if auth is not None:
        lose |= {(one.given_file, auth.user) for one in gone}
    keep = {(row["name"], users.get(upload_of(row["path"]))) for row in stay}
    of_all = {one.given_file for one in gone if one.is_open or auth is None}
    ids = [
        row["id"]
        for row in jobs
        if (named := (row["name"], row["user"])) in lose
        or row["name"] in of_all
        and named not in keep
    ]
    changed = connection.execute(
        """UPDATE jobs SET name = '', error = '', notes = '[]'
           WHERE state NOT IN ('waiting', 'running') AND id IN (SELECT value FROM json_each(?))""",
        (json.dumps(ids),),
    ).rowcount
    if changed:
        sign(connection, "jobs", "j.name = ''")
    return changed
