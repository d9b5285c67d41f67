"""Read documents back from every index before anyone is told that they are kept."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stores import fulltext
from stores.catalogue import MAX_VARIABLES
from stores.chroma import ChromaVectors
from stores.database import Database
from stores.writer import keyword_text, searched_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TOLERANCE = 1e-4  # Chroma scales vectors to length 1 anew, in float32


class Verifier:
    """Compare documents of the journal with the truth, full text and Chroma."""

    def __init__(
        self, database: Database, chroma: ChromaVectors, model: str, *, batch: int
    ) -> None:
        """Read `batch` vectors of `model` at a time."""
        self._database = database
        self._chroma = chroma
        self._model = model
        self._batch = batch

    def missing(self, collection_id: int, documents: Sequence[str]) -> dict[str, str]:
        """Say of each of these documents that is not whole what it lacks, by document id."""
        problems: dict[str, str] = {}
        for start in range(0, len(documents), MAX_VARIABLES):
            self._check(collection_id, documents[start : start + MAX_VARIABLES], problems)
        return problems

    def _check(self, collection_id: int, part: Sequence[str], problems: dict[str, str]) -> None:
        marks = ", ".join("?" * len(part))
        cursor = self._database.read().execute(
            f"""SELECT j.document_id, j.chunks, c.chunk_id, c.document, e.vector,
                       f.rowid AS indexed
                FROM journal j
                LEFT JOIN documents d
                    ON d.collection_id = j.collection_id AND d.document_id = j.document_id
                LEFT JOIN chunks c ON c.document = d.id
                LEFT JOIN {fulltext.table(collection_id)} f ON f.rowid = c.id
                LEFT JOIN embeddings e ON e.content_hash = c.content_hash AND e.model = ?
                WHERE j.collection_id = ? AND j.stage = 'indexed' AND j.document_id IN ({marks})""",
            (self._model, collection_id, *part),
        )
        expected: dict[str, int] = {}
        found: Counter[str] = Counter()
        while rows := cursor.fetchmany(self._batch):
            there = [row for row in rows if row["chunk_id"] is not None]
            self._check_rows(collection_id, there, problems)
            expected |= {row["document_id"]: row["chunks"] for row in rows}
            found.update(row["document_id"] for row in there)
        for document_id, count in expected.items():
            if found[document_id] != count:
                problems[document_id] = f"{found[document_id]} of its {count} chunks are there"

    def _check_rows(
        self, collection_id: int, rows: list[sqlite3.Row], problems: dict[str, str]
    ) -> None:
        ids = [row["chunk_id"] for row in rows]
        stored = self._chroma.stored(collection_id, ids) if ids else {}
        for row in rows:
            if row["indexed"] is None:
                problems[row["document_id"]] = "its text is not in the full-text index"
            elif row["vector"] is None:
                problems[row["document_id"]] = "it has no vector of the current model"
            elif not _same(row, stored.get(row["chunk_id"])):
                problems[row["document_id"]] = "its vector is not in the vector index"


def _same(row: sqlite3.Row, found: tuple[NDArray[np.float32], int] | None) -> bool:
    import numpy as np

    if found is None or found[1] != row["document"]:
        return False
    kept: Any = np.frombuffer(row["vector"], dtype="<f4")
    return len(kept) == len(found[0]) and bool(np.abs(kept - found[0]).max() <= TOLERANCE)


def requeue(connection: sqlite3.Connection, collection_id: int, documents: Sequence[str]) -> None:
    """Write the full text of documents anew and let Chroma learn them again."""
    for document_id in documents:
        rows = connection.execute(
            """SELECT c.id, c.chunk_id, c.text, c.context, c.section, d.title, d.language,
                      d.metadata
               FROM documents d JOIN chunks c ON c.document = d.id
               WHERE d.collection_id = ? AND d.document_id = ?""",
            (collection_id, document_id),
        ).fetchall()
        fulltext.delete(connection, collection_id, [row["id"] for row in rows])
        for row in rows:
            body = searched_text(row["text"], row["context"])
            parts = (row["title"], keyword_text(row["metadata"]), row["section"], body)
            fulltext.insert(connection, collection_id, row["id"], parts, row["language"])
        connection.executemany(
            "INSERT OR REPLACE INTO outbox VALUES (?, ?, 'upsert')",
            [(row["chunk_id"], collection_id) for row in rows],
        )
