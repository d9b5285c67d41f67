"""Take documents out of what was made of them: runs, opinions, conversations and jobs."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection as AbstractCollection
from collections.abc import Sequence

from stores.catalogue import Collection
from stores.erasure.documents import Gone
from stores.erasure.redaction import Elsewhere, Hidden, hide_names, literal_names, redacted
from stores.erasure.words import said_in
from stores.sums_records import CONVERSATION, TRACES, drop_damaged, sign

# Few names are looked for as they are written, before a run is read as JSON.
FEW = 20
FOUND = """SELECT run_id, question, result, trail FROM runs r
    WHERE tenant = :tenant AND collection = :collection AND (
        (:written IS NULL OR EXISTS (SELECT 1 FROM json_each(:written) w
                                     WHERE instr(r.result, w.value) > 0))
        AND EXISTS (SELECT 1 FROM json_each(r.result, '$.evidence') e
                    WHERE json_extract(e.value, '$.document_id')
                        IN (SELECT value FROM json_each(:documents)))
        OR instr(r.result, '"clarification": {') > 0)"""


def redact_traces(
    connection: sqlite3.Connection, collection: Collection, documents: Sequence[Gone]
) -> Counter[str]:
    """Redact, within the caller's transaction, what deleted documents have left behind.

    A conversation with a redacted run goes on from nothing: what the graph knew of it goes.
    """
    _drop_damaged(connection)
    ids = {one.document_id for one in documents}
    names = literal_names(name for one in documents for name in one.names)
    elsewhere = said_in(connection, collection.id)
    touched = _redact_runs(connection, collection, ids, names, elsewhere)
    counts: Counter[str] = Counter(runs=len(touched))
    for run_id, hidden in touched.items():
        counts["feedback"] += _redact_feedback(connection, collection.tenant, run_id, hidden)
    escaped = {_json(name)[1:-1] for name in names}  # as JSON writes them
    of_names = Hidden(literals=names | escaped)
    for name, hiding in _conversations(connection, collection, touched, of_names).items():
        _redact_conversation(connection, name, hiding)
        counts["conversations"] += 1
    counts["jobs"] = _forget_jobs(connection, collection, ids | {one.file for one in documents})
    return counts


def _drop_damaged(connection: sqlite3.Connection) -> None:
    """Delete damaged rows: nobody can say whether they speak of these documents."""
    connection.execute(
        f"""INSERT OR IGNORE INTO erasure_leftovers SELECT 'thread', v.id FROM conversations v
            WHERE v.sum IS NOT {CONVERSATION}"""
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
    of_names = Hidden(literals=names)
    given = {
        "tenant": collection.tenant,
        "collection": collection.name,
        "documents": json.dumps(sorted(ids)),
        "written": _json([_json(one) for one in ids]) if len(ids) <= FEW else None,
    }
    for row in connection.execute(FOUND, given).fetchall():
        result, trail = json.loads(row["result"]), json.loads(row["trail"])
        hidden = redacted(result, trail, ids, elsewhere, names)
        if hidden is None:
            if not hide_names(result, trail, of_names):
                continue
            hidden = of_names
        touched[row["run_id"]] = hidden
        connection.execute(
            "UPDATE runs SET question = ?, result = ?, trail = ? WHERE run_id = ?",
            (hidden.text(row["question"]), _json(result), _json(trail), row["run_id"]),
        )
        sign(connection, "runs", "r.run_id = ?", row["run_id"])
    return touched


def _redact_feedback(
    connection: sqlite3.Connection, tenant: str, run_id: str, hidden: Hidden
) -> int:
    changed = 0
    rows = connection.execute(
        "SELECT id, comment FROM feedback WHERE run_id = ? AND tenant = ? AND comment <> ''",
        (run_id, tenant),
    ).fetchall()
    for row in rows:
        comment = hidden.text(row["comment"])
        if comment != row["comment"]:
            connection.execute("UPDATE feedback SET comment = ? WHERE id = ?", (comment, row["id"]))
            sign(connection, "feedback", "n.id = ?", row["id"])
            changed += 1
    return changed


def _conversations(
    connection: sqlite3.Connection,
    collection: Collection,
    touched: dict[str, Hidden],
    of_names: Hidden,
) -> dict[str, list[Hidden]]:
    """Return the conversations in which these runs stand, or that offer a name, with the words."""
    found: dict[str, list[Hidden]] = defaultdict(list)
    rows = connection.execute(
        """SELECT t.conversation, t.run_id, t.clarification || t.reply || c.waiting AS asked
           FROM conversation_turns t JOIN conversations c ON c.id = t.conversation
           WHERE c.tenant = ? AND c.collection = ?""",
        (collection.tenant, collection.name),
    )
    for row in rows.fetchall():
        if row["run_id"] in touched:
            found[row["conversation"]].append(touched[row["run_id"]])
        elif row["asked"] and of_names.text(row["asked"]) != row["asked"]:
            found[row["conversation"]].append(of_names)
    return found


def _redact_conversation(
    connection: sqlite3.Connection, name: str, hiding: AbstractCollection[Hidden]
) -> None:
    def hide(text: str) -> str:
        for hidden in hiding:
            text = hidden.text(text)
        return text

    rows = connection.execute(
        "SELECT id, run_id, question, clarification, reply FROM conversation_turns"
        " WHERE conversation = ?",
        (name,),
    ).fetchall()
    for row in rows:
        asks = json.loads(row["clarification"] or "null")
        for one in hiding:
            asks = one.json(asks)
        connection.execute(
            "UPDATE conversation_turns SET question = ?, clarification = ?, reply = ? WHERE id = ?",
            (hide(row["question"]), _json(asks) if asks else "", hide(row["reply"]), row["id"]),
        )
    sign(connection, "conversation_turns", "t.conversation = ?", name)
    title = connection.execute("SELECT title FROM conversations WHERE id = ?", (name,)).fetchone()
    connection.execute(
        "UPDATE conversations SET title = ?, checkpoint_id = '', waiting = '' WHERE id = ?",
        (hide(title[0]), name),
    )
    sign(connection, "conversations", "v.id = ?", name)
    connection.execute("INSERT OR IGNORE INTO erasure_leftovers VALUES ('thread', ?)", (name,))


def _forget_jobs(
    connection: sqlite3.Connection, collection: Collection, names: AbstractCollection[str]
) -> int:
    """Take the names of uploads out of the list of jobs, unless their file has other documents."""
    changed = connection.execute(
        """UPDATE jobs SET name = '', error = '', notes = '[]' WHERE tenant = :t
           AND collection = :c AND state NOT IN ('waiting', 'running')
           AND name IN (SELECT value FROM json_each(:names)) AND NOT EXISTS (
               SELECT 1 FROM documents d WHERE d.collection_id = :id AND d.file = jobs.name)""",
        {
            "t": collection.tenant,
            "c": collection.name,
            "names": json.dumps(sorted(names)),
            "id": collection.id,
        },
    ).rowcount
    if changed:
        sign(connection, "jobs", "j.name = ''")
    return changed


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
