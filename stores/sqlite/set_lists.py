"""Access lists that were set for files, which a later ingest keeps; each stands in `meta`."""

from __future__ import annotations

import json
import sqlite3

from stores.sqlite.rows import digest


def note_list(
    connection: sqlite3.Connection, collection_id: int, file: str, acl: list[str]
) -> None:
    """Note within a transaction the list that a file was given; an empty one is none."""
    row = (_key(collection_id, file), json.dumps(acl))
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", row)


def set_list(connection: sqlite3.Connection, collection_id: int, file: str) -> frozenset[str]:
    """Return the list that a file was given, empty for none."""
    query = "SELECT value FROM meta WHERE key = ?"
    row = connection.execute(query, (_key(collection_id, file),)).fetchone()
    return frozenset(json.loads(row[0])) if row else frozenset()


def drop_list(connection: sqlite3.Connection, collection_id: int, file: str) -> None:
    """Forget the list that a file was given."""
    connection.execute("DELETE FROM meta WHERE key = ?", (_key(collection_id, file),))


def drop_lists(connection: sqlite3.Connection, collection_id: int) -> None:
    """Forget the lists that files of a collection were given."""
    connection.execute("DELETE FROM meta WHERE key GLOB ?", (f"acl_{collection_id}_*",))


def carry_list(connection: sqlite3.Connection, collection_id: int, old: str, new: str) -> None:
    """Let a file that takes documents of another over keep the list that it was given."""
    acl = set_list(connection, collection_id, old)
    if acl and not set_list(connection, collection_id, new):
        note_list(connection, collection_id, new, sorted(acl))


def _key(collection_id: int, file: str) -> str:
    return f"acl_{collection_id}_{digest(file)}"
