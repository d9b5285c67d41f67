"""Mend the truth where it is damaged: by leaving out what can be made or read again."""

from __future__ import annotations

import sqlite3

from stores.database import Database
from stores.sums import CHUNK, DOCUMENT, SENTENCES, VECTOR
from stores.sums_records import DERIVED, drop_damaged, sign
from stores.writer import bump


def drop_vectors(connection: sqlite3.Connection) -> int:
    """Delete the damaged vectors within a transaction; return how many."""
    dropped = 0
    for alias, table, own in (
        ("e", "embeddings", VECTOR),
        ("s", "sentence_vectors", SENTENCES),
    ):
        query = f"DELETE FROM {table} AS {alias} WHERE {alias}.sum IS NOT {own}"
        dropped += connection.execute(query).rowcount
    bump(connection)
    return dropped


def read_anew(database: Database) -> int:
    """Make the next ingest read the files of damaged documents; return how many these are."""
    with database.write() as connection:
        drop_damaged(connection, *DERIVED)
        rows = connection.execute(
            f"""SELECT DISTINCT d.id FROM documents d LEFT JOIN chunks c ON c.document = d.id
                WHERE d.sum IS NOT {DOCUMENT} OR (c.id IS NOT NULL AND c.sum IS NOT {CHUNK})"""
        ).fetchall()
        for row in rows:
            connection.execute(
                """UPDATE files SET fingerprint = '' WHERE EXISTS (SELECT 1 FROM documents d
                   WHERE d.id = ? AND d.collection_id = files.collection_id
                       AND d.file = files.relative)""",
                (row[0],),
            )
            connection.execute("UPDATE documents SET content_hash = '' WHERE id = ?", (row[0],))
        sign(connection, "files", "f.fingerprint = ''")
    return len(rows)
