"""The journal of ingest: the set of documents that are on their way into the index.

A document is parsed, chunked, embedded and indexed; when it has been read back from every index
it is verified and leaves the set. What is in `documents` and not in the journal is verified.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from core.faults import fault
from stores.database import Database

Stage = Literal["parsed", "chunked", "embedded", "indexed"]


class Entry(NamedTuple):
    """Name a document on its way; `chunks` is how many it must have, 0 while unknown."""

    document_id: str
    file: str
    chunks: int = 0


class Journal:
    """Note stages that change nothing else."""

    def __init__(self, database: Database) -> None:
        """Use the catalogue's `database`."""
        self._database = database

    def reach(self, collection_id: int, stage: Stage, entries: Iterable[Entry]) -> None:
        """Note in one transaction that these documents have reached a stage."""
        entries = list(entries)
        if not entries:
            return
        with self._database.write() as connection:
            note(connection, collection_id, stage, entries)
            fault(f"{stage}.before")
        fault(f"{stage}.after")

    def indexed(self, collection_id: int, limit: int, after: str = "") -> list[str]:
        """Return ids of documents that are to be read back, in order, those after one of them."""
        rows = self._database.read().execute(
            """SELECT document_id FROM journal WHERE collection_id = ? AND stage = 'indexed'
               AND document_id > ? ORDER BY document_id LIMIT ?""",
            (collection_id, after, limit),
        )
        return [row[0] for row in rows]

    def verified(self, collection_id: int, documents: Iterable[str]) -> None:
        """Let documents that were read back leave the set."""
        documents = list(documents)
        if not documents:
            return
        with self._database.write() as connection:
            connection.executemany(
                """DELETE FROM journal
                   WHERE collection_id = ? AND document_id = ? AND stage = 'indexed'""",
                [(collection_id, document_id) for document_id in documents],
            )
            fault("verified.before")
        fault("verified.after")


def note(
    connection: sqlite3.Connection, collection_id: int, stage: Stage, entries: Iterable[Entry]
) -> None:
    """Note within a transaction that documents have reached a stage."""
    connection.executemany(
        "INSERT OR REPLACE INTO journal VALUES (?, ?, ?, ?, ?)",
        [(collection_id, one.document_id, one.file, stage, one.chunks) for one in entries],
    )


def forget_unfinished(connection: sqlite3.Connection, collection_id: int, file: str) -> None:
    """Take documents out that never became rows, since their file no longer has them."""
    connection.execute(
        "DELETE FROM journal WHERE collection_id = ? AND file = ? AND stage != 'indexed'",
        (collection_id, file),
    )


def pending(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Count the documents that are not verified, by collection, file and stage."""
    rows = connection.execute(
        """SELECT c.tenant, c.name AS collection, j.file, j.stage, count(*) AS documents
           FROM journal j JOIN collections c ON c.id = j.collection_id
           GROUP BY c.tenant, c.name, j.file, j.stage
           ORDER BY c.tenant, c.name, j.file, j.stage"""
    )
    return [dict(row) for row in rows]
