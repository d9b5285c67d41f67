"""Write runs again without what was erased, and the conversations in which they stand."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Any

from core.auth import AuthContext
from stores.erasure.redaction import Elsewhere, Hidden, hide_repeated, nowhere
from stores.sqlite import fulltext
from stores.sqlite.permissions import permission_filter
from stores.sqlite.sums import RUN, sign

Touched = dict[str, list[Hidden]]  # what was hidden in runs, by their ids


def note_erasure(
    connection: sqlite3.Connection, collections: Iterable[int] = (), documents: int = 0
) -> None:
    """Note an erasure within the transaction that changes the truth; without one, collection 0."""
    for number, collection_id in enumerate(list(collections) or [0]):
        connection.execute(
            "INSERT INTO erasures (collection_id, documents, at) VALUES (?, ?, datetime('now'))",
            (collection_id, 0 if number else documents),
        )


def phrase_occurs_elsewhere(
    connection: sqlite3.Connection, collection_id: int | None, auth: AuthContext
) -> Elsewhere:
    """Return a function that tells whether an open document has these analysed terms in a row.

    Only documents count that are open to the whole tenant and that `auth` may see: what stays in a
    redacted text, which several users may read, must say nothing of a text that is hidden from one.
    Where the index cannot be read no word is known, so that more is hidden than must be.
    """
    if collection_id is None:
        return nowhere
    name = fulltext.table(collection_id)
    condition, parameters = permission_filter(auth, collection_id)
    query = f"""SELECT 1 FROM {name} JOIN chunks c ON c.id = {name}.rowid
        JOIN documents d ON d.id = c.document
        WHERE {name} MATCH :row AND d.is_open = 1 AND {condition} LIMIT 1"""

    @cache  # many runs have the same words, and a word of many hidden passages takes long
    def is_said(row: str) -> bool:
        try:
            found = connection.execute(query, {**parameters, "row": row}).fetchone()
        except sqlite3.DatabaseError:
            return False
        return found is not None

    def said(terms: Sequence[str]) -> bool:
        row = fulltext.match_expression([[" ".join(terms)]])
        return bool(row) and is_said(row)

    return said


def save_redacted(
    connection: sqlite3.Connection, run_id: str, result: dict[str, Any], trail: list[Any]
) -> None:
    """Write a redacted run; its recording has what was erased, and goes."""
    result["recording"] = {"erased": True}
    connection.execute(
        "UPDATE runs SET result = ?, trail = ? WHERE run_id = ?",
        (to_json(result), to_json(trail), run_id),
    )
    sign(connection, "runs", "r.run_id = ?", run_id)


def typed_in(connection: sqlite3.Connection, run_id: str, question: str) -> str:
    """Return what was asked in a run and in its conversation."""
    rows = connection.execute(
        """SELECT t.question FROM conversation_turns own
           JOIN conversation_turns t ON t.conversation = own.conversation WHERE own.run_id = ?""",
        (run_id,),
    )
    return "\n".join([question, *(row[0] for row in rows)])


def redact_conversations(
    connection: sqlite3.Connection, touched: Touched
) -> dict[str, list[Hidden]]:
    """Redact the conversations in which these runs stand; return them with what was hidden.

    Their later runs, which may repeat it, are added to `touched`.
    """
    rows = connection.execute(
        """SELECT t.conversation, t.run_id FROM conversation_turns t WHERE t.conversation IN
               (SELECT conversation FROM conversation_turns
                WHERE run_id IN (SELECT value FROM json_each(?))) ORDER BY t.id""",
        (json.dumps(sorted(touched)),),
    ).fetchall()
    found: dict[str, list[Hidden]] = defaultdict(list)
    for name, run_id in rows:
        hiding, own = found[name], touched.get(run_id, [])
        if hiding and _redact_later(connection, run_id, hiding):
            touched.setdefault(run_id, [])
        hiding += own
    for name, hiding in found.items():
        redact_conversation(connection, name, hiding)
    return found


def _redact_later(connection: sqlite3.Connection, run_id: str, hiding: Collection[Hidden]) -> bool:
    """Redact what a run repeats of turns before it; return whether it repeats any."""
    query = f"SELECT result, trail, r.sum IS {RUN} AS sound FROM runs r WHERE run_id = ?"
    row = connection.execute(query, (run_id,)).fetchone()
    if row is None:
        return False
    if not row["sound"]:  # nobody can say what it repeats
        connection.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))
        return True
    result, trail = json.loads(row["result"]), json.loads(row["trail"])
    changes = [hide_repeated(result, trail, one) for one in hiding]
    save_redacted(connection, run_id, result, trail)
    return any(changes)


def redact_conversation(
    connection: sqlite3.Connection, name: str, hiding: Collection[Hidden]
) -> None:
    """Redact what a conversation asked back; what the graph knew of it goes."""
    rows = connection.execute(
        "SELECT id, clarification FROM conversation_turns"
        " WHERE conversation = ? AND clarification <> ''",
        (name,),
    ).fetchall()
    for row in rows:
        asks = json.loads(row["clarification"])
        for one in hiding:
            asks = one.json(asks)
        connection.execute(
            "UPDATE conversation_turns SET clarification = ? WHERE id = ?",
            (to_json(asks), row["id"]),
        )
    sign(connection, "conversation_turns", "t.conversation = ?", name)
    connection.execute(
        "UPDATE conversations SET checkpoint_id = '', waiting = '' WHERE id = ?", (name,)
    )
    sign(connection, "conversations", "v.id = ?", name)
    connection.execute("INSERT OR IGNORE INTO erasure_leftovers VALUES ('thread', ?)", (name,))


def to_json(value: object) -> str:
    """Return a value as JSON, as runs have it."""
    return json.dumps(value, ensure_ascii=False)
