"""Keep the current view of each collection: opened, checked against the truth, extended."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from core.settings import Settings
from stores.database import Database
from stores.repeats import equal_chunks
from stores.segments.arrays import SegmentError
from stores.segments.changes import late_vectors, live_rows, without_vectors
from stores.segments.files import open_part, read_manifest
from stores.segments.masks import Masks
from stores.segments.postings import Formula
from stores.segments.recipe import Recipe
from stores.segments.rows import Rows
from stores.segments.truth import count_rows, snapshot, state
from stores.segments.types import Part
from stores.segments.view import View

FALLBACK = (
    "a search segment is damaged: another index answers for it, and the order of results may"
    " differ; run `carrel reindex`"
)


def segment_fallback(collection_id: int) -> tuple[str, str]:
    """Return under which name a condition knows of an unused segment, and what it says."""
    return f"segment {collection_id}: ", FALLBACK


@dataclass
class _Known:
    """Hold what is kept from one view of a collection to the next."""

    segment: str | None = None
    base: Part | None = None
    note: str = ""
    newer: Rows | None = None
    view: View | None = None


class Views:
    """Hand out views, one per collection and index version."""

    def __init__(
        self, database: Database, folder: Path, recipe: Recipe, settings: Settings
    ) -> None:
        """Look for segments in `folder`, one folder per collection."""
        self._database = database
        self.folder = folder
        self._recipe = recipe
        self._settings = settings
        self._known: dict[int, _Known] = {}
        # Snapshots are taken under the lock, so the versions that are built only grow.
        self._lock = threading.Lock()

    @contextmanager
    def current(self, collection_id: int) -> Iterator[tuple[View, sqlite3.Connection]]:
        """Give the view of now and the connection in whose snapshot it was made."""
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
        """Begin anew with a collection; with a reason, without its segment."""
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
    ) -> View:
        if known.segment != segment:
            known.segment, known.base, known.note = segment, None, ""
            known.newer = None
            self._database.condition.clear(segment_fallback(collection_id)[0])
            if segment is not None:
                self._open(collection_id, known, segment)
        view = self._extended(connection, collection_id, known, version)
        if view is None and known.base is not None:
            known.base, known.newer = None, None
            known.note = "the segment does not match the catalogue"
            self._database.condition.report(*segment_fallback(collection_id))
            view = self._extended(connection, collection_id, known, version)
        if view is None:  # rows died without a note of it
            known.newer = None
            view = self._extended(connection, collection_id, known, version)
        assert view is not None  # rows that were just read are all there
        return view

    def _open(self, collection_id: int, known: _Known, segment: str) -> None:
        folder = self.folder / str(collection_id) / segment
        try:
            manifest = read_manifest(folder)
            if manifest.collection_id != collection_id:
                raise SegmentError("it is of another collection")
            if manifest.settings != self._recipe.settings():
                known.note = "the BM25 settings have changed"  # which is no damage
                return
            known.base = open_part(folder, manifest, sums=True)
        except SegmentError as error:
            known.note = str(error)
            self._database.condition.report(*segment_fallback(collection_id))
            return
        if manifest.model != self._recipe.model:
            known.base = without_vectors(known.base)

    def _extended(
        self, connection: sqlite3.Connection, collection_id: int, known: _Known, version: int
    ) -> View | None:
        """Return the view of now, None when what is known cannot be all there is."""
        base, words = self._usable(connection, collection_id, known)
        parts = self._parts(connection, collection_id, known, base, words)
        alive = live_rows(connection, collection_id, parts)
        rows = sum(len(part.ids) for part in parts)
        live = rows if alive is None else int(alive.sum())
        if live != count_rows(connection, collection_id):
            return None
        if alive is not None and base is None and words:
            return None  # the dead still count in the statistics
        return View(
            collection_id=collection_id,
            version=version,
            segment=known.segment,
            parts=parts,
            alive=alive,
            late=late_vectors(connection, self._recipe.model, parts),
            words=words,
            masks=Masks(self._settings.segment_masks, self._settings.segment_gather_share),
            notes=_notes(known, words),
            equal=equal_chunks(connection, collection_id),
        )

    def _usable(
        self, connection: sqlite3.Connection, collection_id: int, known: _Known
    ) -> tuple[Part | None, bool]:
        """Return the segment, if any, and whether the words of newer rows can be counted now.

        With too many newer rows that takes too long for a question; FTS5 has counted them all.
        """
        base, settings = known.base, self._settings
        most = settings.segment_min_rows
        if base is not None:
            most = max(most, int(settings.segment_max_new_share * len(base.ids)))
        new = count_rows(connection, collection_id, base.high if base is not None else 0)
        return (base, True) if new < most else (None, False)

    def _parts(
        self,
        connection: sqlite3.Connection,
        collection_id: int,
        known: _Known,
        base: Part | None,
        words: bool,
    ) -> tuple[Part, ...]:
        """Return the segment and what is newer than it, reading only what was not known."""
        recipe = self._recipe
        above = base.high if base is not None else 0
        newer = known.newer
        if newer is None or (newer.above, newer.words) != (above, words):
            columns = recipe.columns if words else None
            newer = known.newer = Rows(collection_id, recipe.model, columns, above=above)
        for _ in newer.extend(connection):
            pass
        if base is None:
            return (newer.part(Formula(recipe.k1, recipe.b)),)
        return base, newer.part(Formula(recipe.k1, recipe.b, len(base.ids), base.postings))


def _notes(known: _Known, words: bool) -> tuple[str, ...]:
    notes = [f"the search segment is not used: {known.note}"] if known.note else []
    if not words:
        notes.append("full text answers for words until the search segment is built")
    return tuple(notes)
