"""What was left out of a collection on purpose, with the reason, for as long as its file stays."""

from __future__ import annotations

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
    """Keep and list what was left out."""

    def __init__(self, database: Database) -> None:
        """Use the catalogue's `database`."""
        self._database = database

    def replace(self, collection: Collection, file: str, rows: Sequence[LeftOutRow]) -> None:
        """Note what was left out of a file; what was noted of it before goes."""
        known = "SELECT 1 FROM left_out WHERE collection_id = ? AND file = ?"
        if not rows and not self._database.read().execute(known, (collection.id, file)).fetchone():
            return
        with self._database.write() as connection:
            connection.execute(
                "DELETE FROM left_out WHERE collection_id = ? AND file = ?", (collection.id, file)
            )
            connection.executemany(
                "INSERT OR REPLACE INTO left_out VALUES (?, ?, ?, ?, ?)",
                [(collection.id, file, row.source, row.document_id, row.reason) for row in rows],
            )

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
