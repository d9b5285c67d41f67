"""Read from the truth what segments are made of, always within one snapshot."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from stores.segments.types import Integers
from stores.sqlite.database import Database
from stores.sqlite.fulltext import table
from stores.sqlite.sums import SOUND_SENTENCES, SOUND_VECTOR, VECTOR

BATCH = 512  # rows read at once, between two looks at who waits; chosen, not measured
Values = Sequence[object] | dict[str, object]

_ROWS = """SELECT c.id, c.document, c.chunk_id, {vector}, {sentences}{words}
    FROM chunks c
    LEFT JOIN embeddings e ON e.content_hash = c.content_hash AND e.model = :model
    LEFT JOIN sentence_vectors s ON s.content_hash = c.content_hash AND s.model = :model{join}
    WHERE c.collection_id = :collection AND c.id > :above ORDER BY c.id"""


@contextmanager
def snapshot(database: Database) -> Iterator[sqlite3.Connection]:
    """Give this thread's connection within one read transaction; a nested one joins in."""
    connection = database.read()
    if connection.in_transaction:
        yield connection
        return
    connection.execute("BEGIN")
    try:
        yield connection
    finally:
        connection.commit()  # no statement: it is due also when the caller's time is up


def state(connection: sqlite3.Connection, collection_id: int) -> tuple[int, str | None]:
    """Return the index version and the name of the collection's segment."""
    row = connection.execute(
        "SELECT value, (SELECT name FROM segments WHERE collection_id = ?) FROM meta"
        " WHERE key = 'index_version'",
        (collection_id,),
    ).fetchone()
    return int(row[0]), row[1]


def count_rows(connection: sqlite3.Connection, collection_id: int, above: int = 0) -> int:
    """Count the chunks of a collection whose row id is higher than `above`."""
    row = connection.execute(
        "SELECT count(*) FROM chunks WHERE collection_id = ? AND id > ?", (collection_id, above)
    )
    return int(row.fetchone()[0])


def dead_rows(connection: sqlite3.Connection, collection_id: int) -> Integers:
    """Return the row ids of the chunks that died since the segment was built, sorted."""
    rows = tuples(
        connection,
        "SELECT id FROM dead_chunks WHERE collection_id = ? ORDER BY id",
        (collection_id,),
    )
    return integers(rows)


def read_rows(
    connection: sqlite3.Connection, collection_id: int, model: str, above: int, *, words: bool
) -> Iterator[list[Any]]:
    """Yield batches of rows newer than `above`, by row id.

    A row is its id, document, chunk id, vector, sentence vectors and, with `words`, the analysed
    title, keywords, section and body.
    """
    query = _ROWS.format(
        vector=SOUND_VECTOR,
        sentences=SOUND_SENTENCES,
        words=", f.title, f.keywords, f.section, f.body" if words else "",
        join=f" LEFT JOIN {table(collection_id)} f ON f.rowid = c.id" if words else "",
    )
    cursor = connection.cursor()
    cursor.row_factory = None
    cursor.execute(query, {"model": model, "collection": collection_id, "above": above})
    while batch := cursor.fetchmany(BATCH):
        yield batch


def has_vectors(connection: sqlite3.Connection, collection_id: int, model: str) -> bool:
    """Tell whether any chunk of a collection has a vector of this model."""
    row = connection.execute(
        """SELECT EXISTS (SELECT 1 FROM chunks c JOIN embeddings e
           ON e.content_hash = c.content_hash AND e.model = ? WHERE c.collection_id = ?)""",
        (model, collection_id),
    )
    return bool(row.fetchone()[0])


def models_of(connection: sqlite3.Connection, collection_id: int, model: str) -> tuple[str, ...]:
    """Return the models of a collection's vectors, `model` alone where it has any."""
    if has_vectors(connection, collection_id, model):
        return (model,)
    rows = tuples(connection, "SELECT model FROM embedders ORDER BY model", ())
    return tuple(row[0] for row in rows if has_vectors(connection, collection_id, row[0]))


def vectors_by_row(
    connection: sqlite3.Connection, model: str, rows: Integers
) -> list[tuple[int, bytes]]:
    """Return (row id, vector) of those of these rows that have one."""
    return tuples(
        connection,
        f"""SELECT c.id, e.vector FROM json_each(?) wanted JOIN chunks c ON c.id = wanted.value
           JOIN embeddings e ON e.content_hash = c.content_hash AND e.model = ?
           WHERE e.sum = {VECTOR} ORDER BY c.id""",
        (json.dumps(rows.tolist()), model),
    )


def row_ids(
    connection: sqlite3.Connection, collection_id: int, chunk_ids: Sequence[str]
) -> dict[str, int]:
    """Return the row id of each of these chunks that exists in the collection."""
    # Without CROSS JOIN, SQLite visits every chunk of the collection for a few of them.
    found = tuples(
        connection,
        """SELECT c.chunk_id, c.id FROM json_each(?) wanted
           CROSS JOIN chunks c ON c.chunk_id = wanted.value WHERE c.collection_id = ?""",
        (json.dumps(list(chunk_ids)), collection_id),
    )
    return dict(found)


def tuples(connection: sqlite3.Connection, query: str, values: Values) -> list[Any]:
    """Run a query and return its rows as plain tuples, which are quicker than named ones."""
    cursor = connection.cursor()
    cursor.row_factory = None
    return cursor.execute(query, values).fetchall()


def integers(rows: Sequence[tuple[int]]) -> Integers:
    """Return the only column of rows as an array."""
    return np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))
