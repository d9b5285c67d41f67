"""Bring Chroma up to date with the truth: the set of chunk ids it still has to learn."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

from core.faults import fault
from stores.chroma import ChromaVectors
from stores.database import Database
from stores.embeddings import vectors_of

Progress = Callable[[int], None]


class Outbox:
    """Drain pending changes into Chroma, and rebuild everything when asked."""

    def __init__(
        self, database: Database, chroma: ChromaVectors, model: str, *, batch: int
    ) -> None:
        """Move `batch` vectors of `model` at a time."""
        self._database = database
        self._chroma = chroma
        self._model = model
        self._batch = batch

    def pending(self) -> int:
        """Count the changes Chroma has not seen."""
        return int(self._database.read().execute("SELECT count(*) FROM outbox").fetchone()[0])

    def drain(self, progress: Progress | None = None) -> None:
        """Apply all pending changes; what is applied leaves the outbox batch by batch.

        An index that is found damaged is made anew from the stored vectors.
        """
        if self._chroma.unsound():
            self._chroma.drop()
            self.refill()
        for operation in ("delete", "upsert"):
            for collection_id, chunk_ids in self._batches(operation):
                fault("vectors.before")
                if operation == "delete":
                    self._chroma.delete(collection_id, chunk_ids)
                else:
                    self._upsert(collection_id, chunk_ids)
                fault("vectors.after")
                with self._database.write() as connection:
                    connection.executemany(
                        "DELETE FROM outbox WHERE chunk_id = ? AND operation = ?",
                        [(chunk_id, operation) for chunk_id in chunk_ids],
                    )
                    fault("outbox.before")
                fault("outbox.after")
                if progress is not None:
                    progress(len(chunk_ids))

    def refill(self, collections: Iterable[int] | None = None) -> int:
        """Put every chunk into the outbox, so that draining rebuilds the index; return how many.

        With `collections`, their row ids, those of no other are put in or taken out.
        """
        given = {"ids": None if collections is None else json.dumps(sorted(collections))}
        own = "(:ids IS NULL OR collection_id IN (SELECT value FROM json_each(:ids)))"
        with self._database.write() as connection:
            connection.execute(f"DELETE FROM outbox WHERE {own}", given)
            return connection.execute(
                "INSERT INTO outbox SELECT chunk_id, collection_id, 'upsert' FROM chunks"
                f" WHERE {own}",
                given,
            ).rowcount

    def _batches(self, operation: str) -> Iterator[tuple[int, list[str]]]:
        while True:
            connection = self._database.read()
            row = connection.execute(
                "SELECT collection_id FROM outbox WHERE operation = ? LIMIT 1", (operation,)
            ).fetchone()
            if row is None:
                return
            rows = connection.execute(
                "SELECT chunk_id FROM outbox WHERE operation = ? AND collection_id = ? LIMIT ?",
                (operation, row[0], self._batch),
            ).fetchall()
            yield row[0], [found[0] for found in rows]

    def _upsert(self, collection_id: int, chunk_ids: list[str]) -> None:
        import numpy as np

        connection = self._database.read()
        stored = vectors_of(connection, self._model, chunk_ids)
        marks = ", ".join("?" * len(chunk_ids))
        rows = connection.execute(
            f"SELECT chunk_id, document, kind FROM chunks WHERE chunk_id IN ({marks})", chunk_ids
        ).fetchall()
        documents = {row["chunk_id"]: row["document"] for row in rows}
        kinds = {row["chunk_id"]: row["kind"] for row in rows}
        vectors = {
            chunk_id: np.frombuffer(blob, dtype="<f4")
            for chunk_id, blob in stored.items()
            if chunk_id in documents
        }
        if vectors:
            self._chroma.upsert(collection_id, vectors, documents, kinds)
