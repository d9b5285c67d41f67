"""The change that lets an erasure be finished after an interruption, and documents stay out."""

from __future__ import annotations

import sqlite3

from stores.migrations import migration


@migration
def m014_erasure(connection: sqlite3.Connection) -> None:
    """Note what derived files still have to forget, and the keys of documents that stay out.

    No row holds a name or a text: a collection is its row id, a leftover the id of a thread or of
    an upload, a document its key, which is a hash.
    """
    for statement in (
        """CREATE TABLE erasures (
            id INTEGER PRIMARY KEY, collection_id INTEGER NOT NULL, documents INTEGER NOT NULL,
            at TEXT NOT NULL)""",
        """CREATE TABLE erasure_leftovers (
            kind TEXT NOT NULL CHECK (kind IN ('thread', 'upload')), name TEXT NOT NULL,
            PRIMARY KEY (kind, name)) WITHOUT ROWID""",
        "CREATE TABLE kept_out (key TEXT PRIMARY KEY, at TEXT NOT NULL) WITHOUT ROWID",
    ):
        connection.execute(statement)
