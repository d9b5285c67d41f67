"""The journal of ingest: the set of documents that are on their way into the index.

A document is parsed, chunked, embedded and indexed; when it has been read back from every index
it is verified and leaves the set. What is in `documents` and not in the journal is verified.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from core.faults import fault
from stores.sqlite.catalogue import Collection
from stores.sqlite.database import Database

Stage = Literal["parsed", "chunked", "embedded", "indexed"]


class JournalEntry(NamedTuple):
    """Name a document on its way; `chunks` is how many it must have, 0 while unknown."""

    document_id: str
    file: str
    chunks: int = 0


class Journal:
    """Note stages that change nothing else."""

    def __init__(self, database: Database) -> None:
        """Use the catalogue's `database`."""
        self._database = database

    def reach_stage(
        self, collection_id: int, stage: Stage, entries: Iterable[JournalEntry]
    ) -> None:
        """Note in one transaction that these documents have reached a stage."""
        entries = list(entries)
        if not entries:
            return
        with self._database.write() as connection:
            note(connection, collection_id, stage, entries)
            fault(f"{stage}.before")
        fault(f"{stage}.after")

    def unverified_documents(self, collection_id: int, limit: int, after: str = "") -> list[str]:
        """Return ids of documents that are to be read back, in order, those after one of them."""
        rows = self._database.read().execute(
            """SELECT document_id FROM journal WHERE collection_id = ? AND stage = 'indexed'
               AND document_id > ? ORDER BY document_id LIMIT ?""",
            (collection_id, after, limit),
        )
        return [row[0] for row in rows]

    def mark_verified(self, collection_id: int, documents: Iterable[str]) -> None:
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

    def pending_documents(self) -> list[dict[str, Any]]:
        """Count the documents that are not verified, by collection, file and stage."""
        rows = self._database.read().execute(
            """SELECT c.tenant, c.name AS collection, j.file, j.stage, count(*) AS documents
               FROM journal j JOIN collections c ON c.id = j.collection_id
               GROUP BY c.tenant, c.name, j.file, j.stage
               ORDER BY c.tenant, c.name, j.file, j.stage"""
        )
        return [dict(row) for row in rows]


def note(
    connection: sqlite3.Connection,
    collection_id: int,
    stage: Stage,
    entries: Iterable[JournalEntry],
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


@dataclass(frozen=True)
class LeftOutRow:
    """Name one text that was left out; `source` is what a person is shown."""

    file: str
    source: str
    document_id: str
    reason: str


class LeftOut:
    """List what was left out."""

    def __init__(self, database: Database) -> None:
        """Use the catalogue's `database`."""
        self._database = database

    def list_left_out(
        self, collection: Collection, file: str | None = None, limit: int = -1
    ) -> Iterator[LeftOutRow]:
        """Yield up to `limit` rows of a collection or of one file, by file and source."""
        rows = self._database.read().execute(
            """SELECT file, source, document_id, reason FROM left_out
               WHERE collection_id = :c AND (:f IS NULL OR file = :f)
               ORDER BY file, source LIMIT :n""",
            {"c": collection.id, "f": file, "n": limit},
        )
        for row in rows:
            yield LeftOutRow(*row)

    def count_left_out(self, collection: Collection) -> int:
        """Count what was left out of a collection."""
        query = "SELECT count(*) FROM left_out WHERE collection_id = ?"
        return int(self._database.read().execute(query, (collection.id,)).fetchone()[0])


def replace_left_out(
    connection: sqlite3.Connection, collection_id: int, file: str, rows: Sequence[LeftOutRow]
) -> None:
    """Note within a transaction what was left out of a file; what was noted before goes."""
    connection.execute(
        "DELETE FROM left_out WHERE collection_id = ? AND file = ?", (collection_id, file)
    )
    connection.executemany(
        "INSERT OR REPLACE INTO left_out VALUES (?, ?, ?, ?, ?)",
        [(collection_id, file, row.source, row.document_id, row.reason) for row in rows],
    )
