"""Documents in the audit log: a pseudonym stands for each, also in rows of earlier versions.

An id, or the name of an upload, is a text of somebody who may want it forgotten. Rows of versions
that kept them as they were are struck out with the first erasure: what was named becomes a
pseudonym, the row keeps its hash, and a signed row says what the struck ones hold from then on.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stores.audit_chain import FIELDS, STRUCK, canonical, is_signed, signed_text

HASH = "document_hash"
NAMED_UPTO = "audit_named_upto"  # in `meta`: the last row of a version that kept names
NAMES = {"upload": "name", "deletion": "document", "retrieval": "document"}  # by kind of row
AT_ONCE = 1000  # rows that one signed row tells of

# Striking out alone changes rows: within its transaction the trigger is away.
UNCHANGED = """CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'an audit row is never changed'); END"""

Pseudonym = Callable[[str], str]


def named_rows(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return the rows of earlier versions that name a document."""
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (NAMED_UPTO,)).fetchone()
    if found is None:
        return []
    kinds = ", ".join("?" for _ in NAMES)
    query = f"SELECT * FROM audit WHERE seq <= ? AND kind IN ({kinds}) ORDER BY seq"
    rows = (dict(row) for row in connection.execute(query, (int(found[0]), *NAMES)))
    return [row for row in rows if NAMES[row["kind"]] in _facts(row)]


def staying_rows(connection: sqlite3.Connection, tenant: str | None) -> tuple[int, int]:
    """Count rows of a tenant, or with None of all: all, and those with the words of a question."""
    query = """SELECT count(*), coalesce(sum(instr(facts, '"question":"') > 0), 0) FROM audit
               WHERE :tenant IS NULL OR tenant = :tenant"""  # no quote is bare in a text of JSON
    rows, questions = connection.execute(query, {"tenant": tenant}).fetchone()
    return int(rows), int(questions)


def strike(
    connection: sqlite3.Connection, rows: Sequence[dict[str, Any]], pseudonym: Pseudonym
) -> list[dict[str, Any]]:
    """Put pseudonyms in the place of names; return the facts of the rows that are to say so."""
    connection.execute("DROP TRIGGER audit_unchanged")
    for row in rows:
        facts = _facts(row)
        facts[HASH] = pseudonym(str(facts.pop(NAMES[row["kind"]])))
        row["facts"] = canonical(facts)
        update = "UPDATE audit SET facts = :facts WHERE seq = :seq"
        connection.execute(update, {"facts": row["facts"], "seq": row["seq"]})
    connection.execute(UNCHANGED)
    connection.execute("DELETE FROM meta WHERE key = ?", (NAMED_UPTO,))
    parts = (rows[start : start + AT_ONCE] for start in range(0, len(rows), AT_ONCE))
    return [{"rows": {str(row["seq"]): digest(row) for row in part}} for part in parts]


def struck_rows(connection: sqlite3.Connection, key: bytes) -> dict[int, str]:
    """Return the digests of what struck rows hold by now, by number, as signed rows say."""
    query = "SELECT * FROM audit WHERE kind = ? ORDER BY seq"
    found: dict[int, str] = {}
    try:
        for row in connection.execute(query, (STRUCK,)):
            whole = all(isinstance(row[name], str) for name in FIELDS[1:])
            if whole and is_signed(key, row):
                told = json.loads(row["facts"])["rows"]
                found |= {int(seq): one for seq, one in told.items()}
    except sqlite3.OperationalError:  # bytes that are no text: the walk comes to that row
        return found
    return found


def _facts(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row's facts, none where somebody damaged them."""
    try:
        found = json.loads(row["facts"])
    except (ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def digest(row: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a row's signed fields and its hash, as hex."""
    text = signed_text(row) + str(row["hash"])
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
