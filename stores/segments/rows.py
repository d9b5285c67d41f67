"""Read rows of the truth within one snapshot, and collect them into the arrays of a part."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from stores.segments.postings import Postings, TermCounts, weighted_terms
from stores.segments.types import Booleans, Floats, IndexedRows, Integers, Stored
from stores.sqlite.database import Database
from stores.sqlite.fulltext import table
from stores.sqlite.sums import SOUND_SENTENCES, SOUND_VECTOR, VECTOR

BATCH = 512  # rows read at once, between two looks at who waits; chosen, not measured
Values = Sequence[object] | dict[str, object]

_ROWS = """SELECT c.id, c.document, c.chunk_id, {vector}, {sentences}{words}
    FROM chunks c
    LEFT JOIN embeddings e ON e.content_hash = c.content_hash AND e.model = :model
    LEFT JOIN sentence_vectors s ON s.content_hash = c.content_hash AND s.model = :model{join}
    WHERE c.collection_id = :collection AND c.id > :above ORDER BY c.id LIMIT :batch"""


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
    given = {"model": model, "collection": collection_id, "above": above, "batch": BATCH}
    while batch := cursor.execute(query, given).fetchall():
        given["above"] = batch[-1][0]
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
        f"""SELECT c.id, e.vector FROM json_each(?) wanted 
           JOIN chunks c ON c.id = CAST(wanted.value AS INTEGER)
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


@dataclass(frozen=True)
class SentenceVectors:
    """Hold int8 vectors of shape (m, dimension), row by row of the part.

    The sentences of row i are those from `ends[i - 1]` (0 for the first row) to `ends[i]`; their
    scale does not matter, since `norms` are kept.
    """

    values: Integers
    norms: Floats
    ends: Integers

    def best(self, rows: Integers, vector: Floats) -> Floats:
        """Return the best cosine over the sentences of each row, NaN where it has none."""
        found = np.full(len(rows), np.nan, dtype=np.float32)
        ends = self.ends[rows]
        starts = np.where(rows > 0, self.ends[rows - 1], 0)
        counts = ends - starts
        some = np.flatnonzero(counts)
        if not len(some):
            return found
        counts, starts = counts[some], starts[some]
        firsts = np.cumsum(counts) - counts
        places = np.arange(counts.sum()) + np.repeat(starts - firsts, counts)
        cosines = self.values[places].astype(np.float32) @ vector / self.norms[places]
        found[some] = np.maximum.reduceat(cosines, firsts)
        return found

    def rows(self, row: int) -> Floats:
        """Return the unit vectors of the sentences of one row, shape (m, dimension)."""
        span = slice(int(self.ends[row - 1]) if row else 0, int(self.ends[row]))
        units = self.values[span].astype(np.float32) / self.norms[span, None]
        return np.asarray(units)


def sentence_rows(
    blobs: Sequence[bytes | None], dimension: int
) -> tuple[Integers, Floats, Integers]:
    """Return vectors (m, dimension), their norms and how many each blob holds.

    A blob that is not a whole number of vectors holds none; a vector without direction has norm 1.
    """
    good = [b if b and dimension and not len(b) % dimension else b"" for b in blobs]
    joined = np.frombuffer(b"".join(good), dtype=np.int8)
    values = joined.reshape(-1, dimension) if dimension else joined.reshape(0, 0)
    wide = values.astype(np.float32)
    norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    norms[norms == 0] = 1
    counts = np.array([len(b) // dimension if dimension else 0 for b in good], dtype=np.int64)
    return values, norms.astype(np.float32), counts


class Sink(Protocol):
    """Take arrays of equal row shape one after the other and give them back as one."""

    def append(self, array: Any) -> None:  # noqa: ANN401 - an array of any type
        """Add rows."""

    def array(self) -> Any:  # noqa: ANN401 - an array of any type
        """Return all rows."""


class MemorySink:
    """Keep arrays in memory."""

    def __init__(self, name: str) -> None:
        self._arrays: list[Any] = []

    def append(self, array: Any) -> None:  # noqa: ANN401 - an array of any type
        """Add rows."""
        self._arrays.append(array)

    def array(self) -> Any:  # noqa: ANN401 - an array of any type
        """Return all rows; earlier results stay as they were."""
        if len(self._arrays) > 1:
            self._arrays = [np.concatenate(self._arrays)]
        return self._arrays[0]


class Rows:
    """Grow by the rows of one collection that are newer than the last one seen."""

    def __init__(
        self,
        collection_id: int,
        model: str,
        *,
        words: bool,
        above: int = 0,
        sink: Callable[[str], Sink] = MemorySink,
        stored: Stored | None = None,
    ) -> None:
        """Collect rows newer than `above`; without `words` none are counted.

        `sink` makes the places of the large arrays, "vectors" and "sentences". With `stored`, which
        gives those of rows by their ids, vectors are not collected.
        """
        self.collection_id = collection_id
        self._model = model
        self.above = self.last = above
        self.words = words
        self.count = 0
        self.counts = TermCounts()
        self._sinks = {name: MemorySink(name) for name in ("ids", "documents", "chunk_ids")}
        self._has = MemorySink("has_vector")
        self._stored = stored
        self._vectors = MemorySink("none") if stored else sink("vectors")
        self._sentences = sink("sentences")
        self._norms, self._sentence_counts = MemorySink("norms"), MemorySink("counts")
        self._dimension: int | None = None

    def extend(self, connection: sqlite3.Connection) -> Iterator[int]:
        """Read the new rows, batch by batch, yielding the rows collected so far."""
        batches = read_rows(
            connection, self.collection_id, self._model, self.last, words=self.words
        )
        for batch in batches:
            self._add(batch)
            yield self.count

    def _add(self, batch: Sequence[tuple[Any, ...]]) -> None:
        columns = list(zip(*batch, strict=True))
        self._add_vectors(columns[3], columns[4])
        self._sinks["ids"].append(np.array(columns[0], dtype=np.int64))
        self._sinks["documents"].append(np.array(columns[1], dtype=np.int64))
        self._sinks["chunk_ids"].append(np.array([key.encode() for key in columns[2]]))
        if self.words:
            texts = [[text or "" for text in row[5:9]] for row in batch]
            self.counts.add([weighted_terms(*text) for text in texts])
        self.last = batch[-1][0]
        self.count += len(batch)

    def _add_vectors(
        self, blobs: Sequence[bytes | None], sentences: Sequence[bytes | None]
    ) -> None:
        if self._dimension is None:
            first = next((blob for blob in blobs if blob), None)
            if first is not None:
                self._dimension = len(first) // 4
                self._keep(vector_rows([None] * self.count, self._dimension)[0])
        if self._dimension is not None:
            vectors, has = vector_rows(blobs, self._dimension)
            self._keep(vectors)
        else:
            has = np.zeros(len(blobs), dtype=np.bool_)
        self._has.append(has)
        values, norms, counts = sentence_rows(sentences, self._dimension or 0)
        if self._dimension is not None:
            self._sentences.append(values)
        self._norms.append(norms)
        self._sentence_counts.append(counts)

    def _keep(self, vectors: Floats) -> None:
        if self._stored is None:
            self._vectors.append(vectors)

    def part(self, base: IndexedRows | None = None) -> IndexedRows:
        """Return everything collected so far; the part does not change when more is added.

        Its words are scored under the statistics of a segment `base`.
        """
        given = (base.postings, len(base.ids)) if base is not None else ()
        return self.with_postings(self.counts.postings(*given) if self.words else None)

    def with_postings(self, postings: Postings | None) -> IndexedRows:
        """Return everything collected so far with postings made elsewhere."""
        if not self.count:
            return empty_part(postings)
        if self._dimension is None:
            vectors: Any = np.zeros((self.count, 0), dtype=np.float32)
            values: Any = np.zeros((0, 0), dtype=np.int8)
        else:
            vectors = None if self._stored else self._vectors.array()
            values = self._sentences.array()
        ends = np.cumsum(self._sentence_counts.array(), dtype=np.int64)
        arrays = {name: sink.array() for name, sink in self._sinks.items()}
        if self._stored is not None:
            vectors = self._stored(arrays["ids"])
        return IndexedRows(
            **arrays,
            vectors=vectors,
            has_vector=self._has.array(),
            sentences=SentenceVectors(values, self._norms.array(), ends),
            postings=postings,
        )


def empty_part(postings: Postings | None) -> IndexedRows:
    """Return a part without rows."""
    integers, floats = np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32)
    values = np.zeros((0, 0), dtype=np.int8)
    return IndexedRows(
        ids=integers,
        documents=integers,
        chunk_ids=np.zeros(0, dtype="S1"),
        vectors=floats,
        has_vector=np.zeros(0, dtype=np.bool_),
        sentences=SentenceVectors(values, floats[:, :0].reshape(-1), integers),
        postings=postings,
    )


def vector_rows(blobs: Sequence[bytes | None], dimension: int) -> tuple[Floats, Booleans]:
    """Return vectors (n, dimension), NaN where a blob is no vector, and which rows have one."""
    size = 4 * dimension
    has = np.fromiter((b is not None and len(b) == size for b in blobs), np.bool_, len(blobs))
    vectors = np.full((len(blobs), dimension), np.nan, dtype=np.float32)
    joined = b"".join(b for b, good in zip(blobs, has, strict=True) if b and good)
    vectors[has] = np.frombuffer(joined, dtype="<f4").reshape(-1, dimension)
    return vectors, np.asarray(np.isfinite(vectors).all(axis=1))


class StoredVectors:
    """Stand in the place of an array of vectors, shape (rows, dimension)."""

    def __init__(self, database: Database, model: str, ids: Integers) -> None:
        """Read vectors of `model` of the rows whose ids these are, ascending."""
        self._database = database
        self._model = model
        self._ids = ids
        query = "SELECT dimension FROM embedders WHERE model = ?"
        known = tuples(database.read(), query, (model,))
        self.shape = (len(ids), int(known[0][0]) if known else 0)

    def __getitem__(self, rows: Integers) -> Floats:
        """Return the vectors of rows in any order, NaN where one has none."""
        ids = self._ids[rows]
        found = vectors_by_row(self._database.read(), self._model, np.unique(ids))
        vectors = np.full((len(ids), self.shape[1]), np.nan, dtype=np.float32)
        if found:
            have = np.array([row for row, _ in found], dtype=np.int64)
            read, _ = vector_rows([blob for _, blob in found], self.shape[1])
            places = np.searchsorted(have, ids).clip(max=len(have) - 1)
            there = have[places] == ids
            vectors[there] = read[places[there]]
        return vectors
