"""Keep a vector index equal to the catalogue, and find the nearest visible rows through it.

How far the index has come is a mark in the catalogue, the highest row that was written to it; rows
above it are compared with the question one by one. Rows that died are taken out when the index is
next brought up to date: until then no search shows them, since every hit must be a visible row of
the catalogue. What the index fails to find is looked for in the catalogue's own vectors.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from stores.index.port import IndexUnavailableError, VectorIndex, VectorRow, VectorScope
from stores.segments.channels import nearest
from stores.segments.rows import snapshot, tuples
from stores.segments.types import Floats, Integers, Progress
from stores.segments.view import CollectionView, Selection
from stores.sqlite.catalogue import Collection
from stores.sqlite.database import Database
from stores.sqlite.sums import SOUND_VECTOR, VECTOR

BATCH = 1000  # rows written between two marks; chosen, not measured
# Times as many are asked for when too few of the nearest are visible rows; chosen, not measured
WIDER = 4
FURTHEST = 4096  # are asked for at most, then all vectors are compared; chosen, not measured
# So many documents are named as hidden; of more, those that are visible are named. Chosen, not
# measured.
FEW_HIDDEN = 1000
FEW, SHARE = 1000, 20  # up to so many rows, of so many times as many, need no index: 1 % of 25,000
MISSED_SHARE = 0.25  # of a sample may be missed by an approximate index; chosen, not measured
SAMPLE = 20  # rows that must be found by their own vector; chosen, not measured
REINDEX = "run `carrel reindex`"
EMPTY = f"the vector index has nothing of this collection yet; {REINDEX}"

_NEWER = f"""SELECT c.chunk_id, c.id, c.document, c.kind, {SOUND_VECTOR} FROM chunks c
    LEFT JOIN embeddings e ON e.content_hash = c.content_hash AND e.model = :model
    WHERE c.collection_id = :collection AND c.id > :above ORDER BY c.id LIMIT {BATCH}"""
_SOUND = f"""SELECT c.chunk_id, c.id FROM chunks c
    JOIN embeddings e ON e.content_hash = c.content_hash AND e.model = :model
    WHERE c.collection_id = :collection AND c.id <= :mark AND e.sum = {VECTOR} ORDER BY c.id"""
_COUNT = """SELECT count(*) FROM chunks c
    JOIN embeddings e ON e.content_hash = c.content_hash AND e.model = :model
    WHERE c.collection_id = :collection AND c.id <= :mark"""


class TrackedVectors:
    """Write one model's vectors of the catalogue to a vector index, and search it."""

    def __init__(self, database: Database, index: VectorIndex, model: str) -> None:
        self.index = index
        self.trouble = ""  # of the last search
        self._database = database
        self._model = model
        self._lock = threading.RLock()

    def write_new(self, collection_id: int, progress: Progress | None = None) -> None:
        """Write the rows above the mark, batch by batch, each followed by the mark."""
        with self._turn(collection_id):
            above = self._mark(self._database.read(), collection_id)
            for mark in self.written(collection_id, above, progress):
                with self._database.write() as connection:
                    keep_mark(connection, collection_id, self._model, mark)

    def written(
        self, collection_id: int, above: int = 0, progress: Progress | None = None
    ) -> Iterator[int]:
        """Write the rows above one, batch by batch; yield how far that is, which is not kept."""
        done, given = 0, self._given(collection_id)
        while rows := self._rows(_NEWER, given | {"above": above}):
            self.index.write(collection_id, _sound(rows))
            above, done = rows[-1][1], done + len(rows)
            yield above
            if progress is not None:
                progress(done, max(done, self._count(_COUNT, collection_id)))

    def settle(self, collection_id: int) -> None:
        """Write what is new, take out what died; raise IndexUnavailableError where that fails."""
        with self._turn(collection_id):
            self.write_new(collection_id)
            if self.index.count(collection_id) == self._count(_COUNT, collection_id):
                return
            expected, found = self._compared(collection_id)
            self.index.delete(collection_id, sorted(found.keys() - expected.keys()))
            lacking = sorted(row for key, row in expected.items() if found.get(key) != row)
            for row in lacking:
                rows = self._rows(_NEWER, self._given(collection_id) | {"above": row - 1})[:1]
                self.index.write(collection_id, _sound(rows))
            if (count := self.index.count(collection_id)) != len(expected):
                raise IndexUnavailableError(
                    "the vector index must have what was written to it",
                    value=f"{count} vectors for {len(expected)} chunks",
                    hint=REINDEX,
                )

    def rebuild(self, collection_id: int, progress: Progress | None = None) -> None:
        """Write the vectors of a collection again, all of them."""
        with self._turn(collection_id):
            self.index.drop(collection_id)  # first: where that fails, the mark is still true
            self._unmark(collection_id)
            self.write_new(collection_id, progress)

    def remove(self, collection_id: int) -> None:
        """Forget a collection that is gone."""
        with self._turn(collection_id):
            self.index.drop(collection_id)
            self._unmark(collection_id)

    @contextmanager
    def _turn(self, collection_id: int) -> Iterator[None]:
        """Hold the vectors of a collection, among threads and processes."""
        with self._lock, self._database.coordination.lock(f"vectors.{collection_id}"):
            yield

    def problem(self, collection: Collection) -> str:
        """Compare the ids in the index with the catalogue's, and ask for a sample of vectors."""
        try:
            expected, found = self._compared(collection.id)
            missing = sum(found.get(key) != row for key, row in expected.items())
            orphans = len(found.keys() - expected.keys())
            if missing or orphans:
                return (
                    f"the vector index of '{collection.name}' has {len(found)} vectors for"
                    f" {len(expected)} chunks ({missing} missing, {orphans} of no chunk); {REINDEX}"
                )
            missed, asked = self._sample(collection.id, sorted(expected.values()))
        except IndexUnavailableError as error:
            return str(error)
        if missed > MISSED_SHARE * asked:
            return (
                f"the vector index of '{collection.name}' does not find {missed} of {asked} of its"
                f" own vectors; {REINDEX}"
            )
        return ""

    def nearest(
        self,
        view: CollectionView,
        connection: sqlite3.Connection,
        embedded: Selection,
        vector: Floats,
        pool: int,
        kinds: Sequence[str] = (),
    ) -> tuple[Integers, str]:
        """Return the `pool` rows nearest to `vector`, ascending by number, and a note."""
        every = embedded.numbers()
        mark = self._mark(connection, view.collection_id)
        known = view.ids[every] <= mark
        known &= ~np.isin(every, view.late.rows)
        inside, waiting = every[known], every[~known]
        try:
            # A graph finds the few that a caller may see late, and not all: these are compared.
            few = len(inside) <= min(FEW, len(view.ids) // SHARE)
            found = inside if few else self._found(view, inside, vector, pool, kinds)
            lacking = min(pool, len(inside)) - len(found)
            note = f"the vector index gave {lacking} too few" if lacking > 0 else ""
            if len(every) and not mark:  # as an ingest leaves it that did not reach the server
                note = EMPTY
        except IndexUnavailableError as error:
            note = error.rule  # whoever asks reads it: no address of a server
        self.trouble = note
        if note:
            return nearest(view, every, vector, pool), f"all vectors were compared: {note}"
        return nearest(view, np.union1d(found, waiting), vector, pool), ""

    def _found(
        self,
        view: CollectionView,
        inside: Integers,
        vector: Floats,
        pool: int,
        kinds: Sequence[str],
    ) -> Integers:
        """Return the rows among `inside` that the index finds, at least `pool` if it can."""
        scope = _scope(view, inside, kinds)
        limit, until = pool, time.monotonic() + self.index.timeout_s
        while True:
            hits = self.index.search(view.collection_id, vector, limit, scope, until)
            places, live = view.places(np.array(hits, dtype=np.int64))
            rows = np.intersect1d(places[live], inside)
            enough = len(rows) >= min(pool, len(inside))
            if enough or len(hits) < limit or limit >= FURTHEST:
                return rows
            limit = min(limit * WIDER, FURTHEST)

    def _sample(self, collection_id: int, rows: Sequence[int]) -> tuple[int, int]:
        """Return how many of some rows are not found by their own vectors, and of how many."""
        step = max(1, len(rows) // SAMPLE)
        asked = missed = 0
        for row in rows[::step][:SAMPLE]:
            given = self._given(collection_id) | {"above": row - 1}
            for one in _sound(self._rows(_NEWER, given)[:1]):
                asked += 1
                missed += not self._finds(collection_id, one, len(rows))
        return missed, asked

    def _finds(self, collection_id: int, one: VectorRow, total: int) -> bool:
        """Tell whether a row is found by its own vector; many others may have the same."""
        limit, most = WIDER, min(total, FURTHEST)
        while True:
            if one.row in self.index.search(collection_id, one.vector, limit, VectorScope()):
                return True
            if limit >= most:
                return False
            limit *= WIDER

    def _compared(self, collection_id: int) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return the row of each chunk id as it must be in the index, and as it is."""
        mark = self._mark(self._database.read(), collection_id)
        expected = dict(self._rows(_SOUND, self._given(collection_id) | {"mark": mark}))
        return expected, self.index.rows(collection_id)

    def _given(self, collection_id: int) -> dict[str, object]:
        return {"collection": collection_id, "model": self._model}

    def _rows(self, query: str, values: dict[str, object]) -> list[Any]:
        with snapshot(self._database) as connection:
            return tuples(connection, query, values)

    def _count(self, query: str, collection_id: int) -> int:
        mark = self._mark(self._database.read(), collection_id)
        return int(self._rows(query, self._given(collection_id) | {"mark": mark})[0][0])

    def _mark(self, connection: sqlite3.Connection, collection_id: int) -> int:
        row = connection.execute(
            "SELECT high FROM indexed_vectors WHERE collection_id = ? AND model = ?",
            (collection_id, self._model),
        ).fetchone()
        return int(row[0]) if row else 0

    def _unmark(self, collection_id: int) -> None:
        with self._database.write() as connection:
            connection.execute(
                "DELETE FROM indexed_vectors WHERE collection_id = ?", (collection_id,)
            )


def keep_mark(connection: sqlite3.Connection, collection_id: int, model: str, mark: int) -> None:
    """Keep how far the index has come with a collection."""
    connection.execute(
        "INSERT OR REPLACE INTO indexed_vectors VALUES (?, ?, ?)", (collection_id, model, mark)
    )


def _sound(rows: Sequence[Any]) -> list[VectorRow]:
    return [
        VectorRow(chunk_id, row, document, kind, np.frombuffer(vector, dtype="<f4"))
        for chunk_id, row, document, kind, vector in rows
        if vector is not None
    ]


def _scope(view: CollectionView, inside: Integers, kinds: Sequence[str]) -> VectorScope:
    """Name the documents of these rows, or those that are hidden where these are few."""
    seen = np.unique(view.documents[inside])
    every = np.unique(view.documents)
    hidden = np.setdiff1d(every, seen, assume_unique=True)
    if not len(hidden):
        return VectorScope(kinds=kinds)
    if len(hidden) <= min(FEW_HIDDEN, len(seen)):
        return VectorScope(hidden=hidden.tolist(), kinds=kinds)
    return VectorScope(documents=seen.tolist(), kinds=kinds)
