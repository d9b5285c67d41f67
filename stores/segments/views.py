"""Keep the current view of each collection: opened, checked against the truth, extended."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from core.settings import Settings
from stores.segments.files import SegmentError, open_part, read_manifest
from stores.segments.postings import bm25_settings
from stores.segments.rows import (
    Rows,
    count_rows,
    dead_rows,
    snapshot,
    state,
    vector_rows,
    vectors_by_row,
)
from stores.segments.types import Booleans, IndexedRows, Integers, Stored
from stores.segments.view import CollectionView, Late, Masks, joined
from stores.sqlite.database import Database
from stores.sqlite.quality import equal_chunks


def live_rows(
    connection: sqlite3.Connection, collection_id: int, parts: tuple[IndexedRows, ...]
) -> Booleans | None:
    """Return which rows are alive, None when all are."""
    dead = dead_rows(connection, collection_id)
    ids: Integers = joined([part.ids for part in parts])
    if not len(dead) or not len(ids):
        return None
    gone = np.isin(ids, dead)
    return ~gone if gone.any() else None


def late_vectors(
    connection: sqlite3.Connection, model: str, parts: tuple[IndexedRows, ...]
) -> Late:
    """Return the vectors that rows got after they were read."""
    empty = Late(np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32))
    ids, has = joined([p.ids for p in parts]), joined([p.has_vector for p in parts])
    if has.all():
        return empty
    found = vectors_by_row(connection, model, ids[~has])
    if not found:
        return empty
    dimension = max(part.vectors.shape[1] for part in parts) or len(found[0][1]) // 4
    vectors, usable = vector_rows([blob for _, blob in found], dimension)
    late = np.array([row for row, _ in found], dtype=np.int64)
    return Late(np.searchsorted(ids, late[usable]), vectors[usable])


def without_vectors(part: IndexedRows) -> IndexedRows:
    """Return a part whose vectors are of another model, as one that has none."""
    rows = len(part.ids)
    sentences = replace(part.sentences, ends=np.zeros(rows, dtype=np.int64))
    return replace(
        part,
        vectors=np.zeros((rows, 0), dtype=np.float32),
        has_vector=np.zeros(rows, dtype=np.bool_),
        sentences=sentences,
    )


# With more new chunks than this share, FTS5 answers for words; chosen, no measurement is kept.
MAX_NEW_SHARE = 0.3

FALLBACK = (
    "a search segment is damaged: another index answers for it, and the order of results may"
    " differ; run `carrel reindex`"
)


def segment_fallback(collection_id: int) -> tuple[str, str]:
    """Return the name and the message of the condition that reports an unused segment."""
    return f"segment {collection_id}: ", FALLBACK


@dataclass
class _Known:
    """Hold the data kept from one view of a collection to the next."""

    segment: str | None = None
    base: IndexedRows | None = None
    note: str = ""
    newer: Rows | None = None
    view: CollectionView | None = None


class Views:
    """Hand out views, one per collection and index version."""

    def __init__(
        self,
        database: Database,
        folder: Path,
        model: str,
        settings: Settings,
        stored: Stored | None = None,
    ) -> None:
        """Look for segments in `folder`, one folder per collection.

        `stored` gives the vectors of rows by their ids where segments have none.
        """
        self._stored = stored
        self._database = database
        self.folder = folder
        self._model = model
        self._settings = settings
        self._known: dict[int, _Known] = {}
        # Snapshots are taken under the lock, so the versions that are built only grow.
        self._lock = threading.Lock()

    @contextmanager
    def current(self, collection_id: int) -> Iterator[tuple[CollectionView, sqlite3.Connection]]:
        """Yield the present view and the connection in whose snapshot it was made."""
        with snapshot(self._database) as connection:
            with self._lock:
                version, segment = state(connection, collection_id)
                known = self._known.setdefault(collection_id, _Known())
                view = known.view
                if view is None or (view.version, view.segment) != (version, segment):
                    view = self._build(connection, collection_id, known, version, segment)
                    known.view = view
            yield view, connection

    def forget(self, collection_id: int, reason: str = "") -> None:
        """Begin again with a collection; with a reason, without its segment."""
        with self._lock:
            known = self._known.pop(collection_id, None)
            if reason and known is not None:
                self._database.condition.report(*segment_fallback(collection_id))
                self._known[collection_id] = _Known(segment=known.segment, note=reason)

    def close(self) -> None:
        """Let go of all segments."""
        with self._lock:
            self._known.clear()

    def _build(
        self,
        connection: sqlite3.Connection,
        collection_id: int,
        known: _Known,
        version: int,
        segment: str | None,
    ) -> CollectionView:
        if known.segment != segment:
            known.segment, known.base, known.note = segment, None, ""
            known.newer = None
            self._database.condition.clear(segment_fallback(collection_id)[0])
            if segment is not None:
                self._open(collection_id, known, segment)
        view = self._extend(connection, collection_id, known, version)
        if view is None and known.base is not None:
            known.base, known.newer = None, None
            known.note = "the segment does not match the catalogue"
            self._database.condition.report(*segment_fallback(collection_id))
            view = self._extend(connection, collection_id, known, version)
        if view is None:  # rows died without a note of it
            known.newer = None
            view = self._extend(connection, collection_id, known, version)
        assert view is not None  # rows that were just read are all there
        return view

    def _open(self, collection_id: int, known: _Known, segment: str) -> None:
        folder = self.folder / str(collection_id) / segment
        try:
            manifest = read_manifest(folder)
            if manifest.collection_id != collection_id:
                raise SegmentError("it is of another collection")
            if manifest.settings != bm25_settings():
                known.note = "the BM25 settings have changed"  # which is no damage
                return
            known.base = open_part(folder, manifest, sums=True, stored=self._stored)
        except SegmentError as error:
            known.note = str(error)
            self._database.condition.report(*segment_fallback(collection_id))
            return
        if manifest.model != self._model:
            known.base = without_vectors(known.base)

    def _extend(
        self, connection: sqlite3.Connection, collection_id: int, known: _Known, version: int
    ) -> CollectionView | None:
        """Return the view extended to the present, None when known rows may be missing from it."""
        base, words = self._usable(connection, collection_id, known)
        parts = self._parts(connection, collection_id, known, base, words)
        alive = live_rows(connection, collection_id, parts)
        rows = sum(len(part.ids) for part in parts)
        live = rows if alive is None else int(alive.sum())
        if live != count_rows(connection, collection_id):
            return None
        if alive is not None and base is None and words:
            return None  # the dead still count in the statistics
        return CollectionView(
            collection_id=collection_id,
            version=version,
            segment=known.segment,
            parts=parts,
            alive=alive,
            late=late_vectors(connection, self._model, parts),
            words=words,
            masks=Masks(),
            notes=_notes(known, words),
            equal=equal_chunks(connection, collection_id),
        )

    def _usable(
        self, connection: sqlite3.Connection, collection_id: int, known: _Known
    ) -> tuple[IndexedRows | None, bool]:
        """Return the segment, if any, and whether the words of newer rows can be counted now.

        With too many newer rows that takes too long for a question; FTS5 has counted them all.
        """
        base, settings = known.base, self._settings
        most = settings.segments.min_rows
        if base is not None:
            most = max(most, int(MAX_NEW_SHARE * len(base.ids)))
        new = count_rows(connection, collection_id, base.high if base is not None else 0)
        return (base, True) if new < most else (None, False)

    def _parts(
        self,
        connection: sqlite3.Connection,
        collection_id: int,
        known: _Known,
        base: IndexedRows | None,
        words: bool,
    ) -> tuple[IndexedRows, ...]:
        """Return the segment and the rows newer than it, reading only unknown ones."""
        above = base.high if base is not None else 0
        newer = known.newer
        if newer is None or (newer.above, newer.words) != (above, words):
            newer = known.newer = Rows(
                collection_id, self._model, words=words, above=above, stored=self._stored
            )
        for _ in newer.extend(connection):
            pass
        if base is None:
            return (newer.part(),)
        return base, newer.part(base)


def _notes(known: _Known, words: bool) -> tuple[str, ...]:
    notes = [f"the search segment is not used: {known.note}"] if known.note else []
    if not words:
        notes.append("full text answers for words until the search segment is built")
    return tuple(notes)
