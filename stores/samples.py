"""Chunks with their stored vectors, which the vector index must know."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from stores.catalogue import Collection
from stores.embeddings import vectors_of

SAMPLE = 20  # chunks of a collection


def vector_sample(
    connection: sqlite3.Connection, collections: Sequence[Collection], model: str
) -> dict[str, Any]:
    """Return chunks spread over each collection, with the vectors they were given.

    Those that the index has still to learn are left out.
    """
    import numpy as np

    sample: dict[str, Any] = {}
    for collection in collections:
        rows = connection.execute(
            """SELECT chunk_id FROM (
                 SELECT chunk_id, row_number() OVER (ORDER BY id) - 1 AS place,
                        count(*) OVER () AS total FROM chunks
                 WHERE collection_id = ? AND chunk_id NOT IN (SELECT chunk_id FROM outbox))
               WHERE place % max(1, total / ?) = 0 LIMIT ?""",
            (collection.id, SAMPLE, SAMPLE),
        ).fetchall()
        stored = vectors_of(connection, model, [row["chunk_id"] for row in rows])
        sample[str(collection.id)] = [
            {
                "chunk_id": row["chunk_id"],
                "vector": np.frombuffer(stored[row["chunk_id"]], dtype="<f4").tolist(),
            }
            for row in rows
            if row["chunk_id"] in stored
        ]
    return sample
