"""The migration that gives every row of the truth its check sum."""

from __future__ import annotations

import sqlite3

from stores import sums
from stores.migrations import migration


@migration
def m011_sums(connection: sqlite3.Connection) -> None:
    """Give rows their sums, and note the damaged documents and the dimension of each model."""
    tables = ("documents", "chunks", "embeddings", "sentence_vectors", "collections", "api_keys")
    for table in tables:
        connection.execute(f"ALTER TABLE {table} ADD COLUMN sum INTEGER")
    connection.execute(
        "CREATE TABLE quarantine (document INTEGER PRIMARY KEY, reason TEXT NOT NULL)"
    )
    connection.execute(
        """CREATE TRIGGER documents_quarantine AFTER DELETE ON documents BEGIN
            DELETE FROM quarantine WHERE document = OLD.id; END"""
    )
    connection.execute(
        "CREATE TABLE embedders (model TEXT PRIMARY KEY, dimension INTEGER NOT NULL) WITHOUT ROWID"
    )
    connection.execute(
        "INSERT INTO embedders SELECT model, max(length(vector)) / 4 FROM embeddings GROUP BY model"
    )
    sums.register(connection)
    sums.sign_all(connection)
