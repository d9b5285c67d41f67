"""Is everything that was ingested still there, and does it answer?"""

from __future__ import annotations

import sqlite3
from typing import Any

import numpy as np

from stores import canary
from stores.embeddings import vectors_of
from stores.fulltext import table
from stores.store import Store

SAMPLE = 20


def examine(store: Store) -> dict[str, Any]:
    """Compare the derived indexes with the truth and ask the vector index what it must know.

    `ok` is False when anything is missing; each problem says what to do.
    """
    connection = store.database.read()
    problems: list[str] = []
    damage = [row[0] for row in connection.execute("PRAGMA quick_check(5)") if row[0] != "ok"]
    problems += [f"the catalogue is damaged ({line}); restore a backup" for line in damage]
    documents = _count(connection, "SELECT count(*) FROM documents")
    chunks = _count(connection, "SELECT count(*) FROM chunks")
    rows = _fulltext_rows(store, connection, problems)
    problems += store.hot.problems(store.catalogue.collections())
    if unembedded := _without_vector(store, connection):
        problems.append(
            f"{unembedded} chunks have no vector of the current model; run `carrel reindex`"
        )
    if pending := store.outbox.pending():
        problems.append(
            f"{pending} changes have not reached the vector index; ingest again or reindex"
        )
    if left := store.erasure.pending():
        problems.append(left.problem)
    vectors = _vectors(store, connection, chunks, problems) if chunks else 0
    return {
        "ok": not problems,
        "documents": documents,
        "chunks": chunks,
        "fts_rows": rows,
        "vectors": vectors,
        "problems": problems,
    }


def _count(connection: sqlite3.Connection, query: str, *values: object) -> int:
    return int(connection.execute(query, values).fetchone()[0])


def _fulltext_rows(store: Store, connection: sqlite3.Connection, problems: list[str]) -> int:
    total = 0
    for collection in store.catalogue.collections():
        try:
            rows = store.fulltext.rows(collection.id)
            store.fulltext.inverse_frequencies(collection.id, ["a"])
            with store.database.write() as writer:
                name = table(collection.id)
                writer.execute(f"INSERT INTO {name} ({name}) VALUES ('integrity-check')")
        except sqlite3.DatabaseError as error:
            problems.append(f"full text of '{collection.name}': {error}; run `carrel reindex`")
            continue
        expected = _count(
            connection, "SELECT count(*) FROM chunks WHERE collection_id = ?", collection.id
        )
        total += rows
        if rows != expected:
            problems.append(
                f"full text of '{collection.name}' has {rows} rows for {expected} chunks;"
                " run `carrel reindex`"
            )
    return total


def _without_vector(store: Store, connection: sqlite3.Connection) -> int:
    return _count(
        connection,
        "SELECT count(*) FROM chunks c WHERE NOT EXISTS (SELECT 1 FROM embeddings e"
        " WHERE e.content_hash = c.content_hash AND e.model = ?)",
        store.model_id,
    )


def _vectors(store: Store, connection: sqlite3.Connection, chunks: int, problems: list[str]) -> int:
    report = canary.probe(store.folder / "chroma", store.model_id, _sample(store, connection))
    if "error" in report:
        problems.append(f"the vector index: {report['error']}; run `carrel reindex`")
        return 0
    vectors = sum(report["counts"].values())
    if vectors != chunks:
        problems.append(
            f"the vector index has {vectors} vectors for {chunks} chunks; run `carrel reindex`"
        )
    if report["missed"]:
        problems.append(
            f"the vector index does not find {report['missed']} of {report['asked']} of its own"
            " vectors; run `carrel reindex`"
        )
    return int(vectors)


def _sample(store: Store, connection: sqlite3.Connection) -> dict[str, Any]:
    """Take chunks spread over each collection, with the vectors they were given."""
    sample: dict[str, Any] = {}
    for collection in store.catalogue.collections():
        rows = connection.execute(
            """SELECT chunk_id, document FROM (
                 SELECT chunk_id, document, row_number() OVER (ORDER BY id) - 1 AS place,
                        count(*) OVER () AS total FROM chunks WHERE collection_id = ?)
               WHERE place % max(1, total / ?) = 0 LIMIT ?""",
            (collection.id, SAMPLE, SAMPLE),
        ).fetchall()
        stored = vectors_of(connection, store.model_id, [row["chunk_id"] for row in rows])
        sample[str(collection.id)] = [
            {
                "chunk_id": row["chunk_id"],
                "document": row["document"],
                "vector": np.frombuffer(stored[row["chunk_id"]], dtype="<f4").tolist(),
            }
            for row in rows
            if row["chunk_id"] in stored
        ]
    return sample
