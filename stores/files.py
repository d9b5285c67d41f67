"""The table of files: which were ingested, with what result, and which documents are theirs."""

from __future__ import annotations

import json
from collections.abc import Iterable

from stores.catalogue import Collection
from stores.database import Database
from stores.rows import FileRow
from stores.writer import bump, remove_document


class Files:
    """Read and write what is known of the ingested files of a collection."""

    def __init__(self, database: Database) -> None:
        """Use the catalogue's `database`."""
        self._database = database

    def finish(self, collection: Collection, file: FileRow, document_ids: set[str]) -> None:
        """Note a file as done and drop the documents it no longer contains."""
        with self._database.write() as connection:
            rows = connection.execute(
                "SELECT id, document_id FROM documents WHERE collection_id = ? AND file = ?",
                (collection.id, file.relative),
            ).fetchall()
            gone = [row["id"] for row in rows if row["document_id"] not in document_ids]
            for row_id in gone:
                remove_document(connection, collection.id, row_id)
            connection.execute(
                "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?)",
                (
                    collection.id,
                    file.relative,
                    file.path,
                    file.fingerprint,
                    json.dumps(file.failures, ensure_ascii=False),
                ),
            )
            if gone:
                bump(connection)

    def move(self, collection: Collection, file: FileRow, path: str) -> None:
        """Note that an unchanged file lies at another place now."""
        if file.path == path:
            return
        with self._database.write() as connection:
            connection.execute(
                "UPDATE files SET path = ? WHERE collection_id = ? AND relative = ?",
                (path, collection.id, file.relative),
            )

    def forget(self, collection: Collection, relatives: Iterable[str]) -> int:
        """Remove files with all their documents; return how many documents went."""
        removed = 0
        with self._database.write() as connection:
            for relative in relatives:
                rows = connection.execute(
                    "SELECT id FROM documents WHERE collection_id = ? AND file = ?",
                    (collection.id, relative),
                ).fetchall()
                for row in rows:
                    remove_document(connection, collection.id, row["id"])
                    removed += 1
                connection.execute(
                    "DELETE FROM files WHERE collection_id = ? AND relative = ?",
                    (collection.id, relative),
                )
            bump(connection)
        return removed

    def all(self, collection: Collection) -> dict[str, FileRow]:
        """Return the ingested files of a collection by relative path."""
        rows = self._database.read().execute(
            "SELECT * FROM files WHERE collection_id = ?", (collection.id,)
        )
        return {
            row["relative"]: FileRow(
                row["relative"], row["path"], row["fingerprint"], json.loads(row["failures"])
            )
            for row in rows
        }

    def document_hashes(self, collection: Collection) -> dict[str, tuple[str, str]]:
        """Return (file, content hash) of each document by document id."""
        rows = self._database.read().execute(
            "SELECT document_id, file, content_hash FROM documents WHERE collection_id = ?",
            (collection.id,),
        )
        return {row[0]: (row[1], row[2]) for row in rows}

    def totals(self, collection: Collection, files: Iterable[str]) -> tuple[int, int]:
        """Count the documents and chunks that these files amount to."""
        wanted = set(files)
        rows = self._database.read().execute(
            """SELECT d.file, count(DISTINCT d.id), count(c.id) FROM documents d
               LEFT JOIN chunks c ON c.document = d.id
               WHERE d.collection_id = ? GROUP BY d.file""",
            (collection.id,),
        )
        counts = [(row[1], row[2]) for row in rows if row[0] in wanted]
        return sum(c[0] for c in counts), sum(c[1] for c in counts)
