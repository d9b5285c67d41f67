"""What was left out of a collection on purpose, with the reason, for as long as its file stays."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stores.catalogue import Collection
from stores.database import Database


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

    def all(
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

    def count(self, collection: Collection) -> int:
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
