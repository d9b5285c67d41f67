"""Build segments from the truth, publish them, and clear away what is left of others.

The name of the published segment stands in the catalogue, and what died before its snapshot is
forgotten in the same transaction: a reader's snapshot always has a segment and its dead together.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from core.errors import CarrelError, OperatorError
from core.faults import fault
from core.settings import Settings
from stores.segments import files
from stores.segments.files import FileSink, SegmentError, SegmentManifest
from stores.segments.postings import bm25_settings, encode_terms
from stores.segments.rows import Rows, count_rows, dead_rows, has_vectors, snapshot, state
from stores.segments.types import Integers, Progress, Stored
from stores.sqlite.catalogue import Collection
from stores.sqlite.database import Database

# A segment with a larger share of new and deleted chunks is built again; chosen, not measured.
REBUILD_SHARE = 0.1

Pause = Callable[[], None]


class Cancelled(Exception):
    """Say that a build was stopped before it was done."""


class Builder:
    """Build the segments under one folder, one at a time."""

    def __init__(
        self,
        database: Database,
        folder: Path,
        model: str,
        settings: Settings,
        stored: Stored | None = None,
    ) -> None:
        """Keep the segments of a collection in a folder named by its row id.

        With `stored` they hold no vectors: it gives those of rows by their ids.
        """
        self._stored = stored
        self._database = database
        self._folder = folder
        self._model = model
        self._settings = settings
        self._lock = threading.Lock()

    def refresh(
        self, collection_id: int, progress: Progress | None = None, pause: Pause | None = None
    ) -> bool:
        """Build the segment if enough has changed since it was built; return whether it was."""
        with self._turn(collection_id, wait=False) as taken:
            if not taken:
                return False  # another process builds it
            with snapshot(self._database) as connection:
                worth = self._worth_it(connection, collection_id)
            return worth and self._rebuild(collection_id, progress, pause)

    def rebuild(self, collection_id: int, progress: Progress | None = None) -> bool:
        """Build the segment; return False when the collection is too small for one.

        No older one is kept: who asks for it may want deleted text gone.
        """
        with self._turn(collection_id):
            return self._rebuild(collection_id, progress, None, keeps=False)

    def remove(self, collection_id: int) -> None:
        """Remove the files of a collection that is gone."""
        with self._turn(collection_id):
            shutil.rmtree(self._folder / str(collection_id), ignore_errors=True)

    @contextlib.contextmanager
    def _turn(self, collection_id: int, *, wait: bool = True) -> Iterator[bool]:
        """Hold the files of a collection, among threads and processes."""
        name, coordination = f"segments.{collection_id}", self._database.coordination
        with self._lock, coordination.lock(name, wait=wait) as taken:
            yield taken

    def problems(self, collection: Collection) -> list[str]:
        """Return the faults of a collection's segment, each with what to do."""
        with snapshot(self._database) as connection:
            _, name = state(connection, collection.id)
            if name is None:
                return []
            try:
                self._check_segment(connection, collection.id, name, sums=True)
            except SegmentError as error:
                what = f"the search segment of '{collection.name}': {error}"
                return [f"{what}; run `carrel reindex`"]
        return []

    def _worth_it(self, connection: sqlite3.Connection, collection_id: int) -> bool:
        settings = self._settings
        _, name = state(connection, collection_id)
        rows = count_rows(connection, collection_id)
        if rows < settings.segments.min_rows:
            return name is not None  # it shrank: take the segment away
        if name is None:
            return True
        try:
            manifest, ids = self._check_segment(connection, collection_id, name)
        except SegmentError:
            return True
        if manifest.model != self._model:
            # Without an embedder there are none: the vectors of another are kept for it.
            return has_vectors(connection, collection_id, self._model)
        new = count_rows(connection, collection_id, int(ids[-1]) if len(ids) else 0)
        changed = new + len(dead_rows(connection, collection_id))
        least = max(settings.segments.rebuild_min_rows, REBUILD_SHARE * len(ids))
        return changed > least

    def _check_segment(
        self, connection: sqlite3.Connection, collection_id: int, name: str, *, sums: bool = False
    ) -> tuple[SegmentManifest, Integers]:
        """Return the manifest and row ids of a segment that fits the truth, or raise."""
        folder = self._folder / str(collection_id) / name
        manifest = files.read_manifest(folder)
        if manifest.settings != bm25_settings():
            raise SegmentError("the BM25 settings have changed")
        if sums and (damaged := files.find_damaged_files(folder, manifest)):
            raise SegmentError(f"damaged: {', '.join(damaged)}")
        part = files.open_part(folder, manifest, stored=self._stored)
        live = len(part.ids) - int(np.isin(part.ids, dead_rows(connection, collection_id)).sum())
        new = count_rows(connection, collection_id, part.high)
        if live + new != count_rows(connection, collection_id):
            raise SegmentError("it does not match the catalogue")
        return manifest, part.ids

    def _rebuild(
        self,
        collection_id: int,
        progress: Progress | None,
        pause: Pause | None,
        *,
        keeps: bool = True,
    ) -> bool:
        home = self._folder / str(collection_id)
        with snapshot(self._database) as connection:
            _, before = state(connection, collection_id)
        # Other processes may be reading the one before: it goes with the next build.
        kept = before if keeps and self._database.coordination.is_shared else None
        try:
            name = self._write(collection_id, home, progress, pause)
        except OSError as error:
            raise OperatorError(
                "a search segment could not be written",
                value=f"{home} ({error.strerror or error})",
                hint="searches work without it, slower; free some space, then `carrel reindex`",
            ) from None
        finally:
            self._clear(collection_id, home, kept)
        return name is not None

    def _write(
        self, collection_id: int, home: Path, progress: Progress | None, pause: Pause | None
    ) -> str | None:
        with snapshot(self._database) as connection:
            version, _ = state(connection, collection_id)
            dead = dead_rows(connection, collection_id)
            total = count_rows(connection, collection_id)
            if total < self._settings.segments.min_rows:
                self._publish(collection_id, None, dead)
                return None
            name = f"{version:012d}-{secrets.token_hex(4)}"
            folder = home / name
            folder.mkdir(parents=True)
            sinks: dict[str, FileSink] = {}

            def sink(array: str) -> FileSink:
                sinks[array] = FileSink(folder / array)
                return sinks[array]

            rows = Rows(collection_id, self._model, words=True, sink=sink, stored=self._stored)
            try:
                for done in rows.extend(connection):
                    if progress is not None:
                        progress(done, total)
                    if pause is not None:
                        pause()
                self._finish(rows, folder, sinks, version)
            finally:
                for one in sinks.values():
                    one.close()
        self._publish(collection_id, name, dead)
        return name

    def _finish(self, rows: Rows, folder: Path, sinks: dict[str, FileSink], version: int) -> None:
        counts = rows.counts
        terms = encode_terms(counts.vocabulary)
        ranked = sorted(range(len(terms)), key=terms.__getitem__)
        order = [0] * len(terms)
        for place, number in enumerate(ranked):
            order[number] = place
        postings = counts.postings(order=order)
        part = rows.with_postings(postings)
        arrays = files.small_arrays(part, (terms[number] for number in ranked))
        entries = files.write_arrays(folder, arrays)
        for name, sink in sinks.items():
            sink.close(durable=True)
            entries[name] = sink.entry()
        manifest = SegmentManifest(
            collection_id=rows.collection_id,
            index_version=version,
            model=self._model,
            settings=bm25_settings(),
            rows=rows.count,
            mean_length=postings.mean_length,
            arrays=entries,
        )
        files.write_manifest(folder, manifest)

    def _publish(self, collection_id: int, name: str | None, dead: Integers) -> None:
        with self._database.write() as connection:
            if name is None:
                connection.execute("DELETE FROM segments WHERE collection_id = ?", (collection_id,))
            else:
                connection.execute(
                    "INSERT OR REPLACE INTO segments VALUES (?, ?)", (collection_id, name)
                )
            connection.executemany(
                "DELETE FROM dead_chunks WHERE collection_id = ? AND id = ?",
                [(collection_id, row) for row in dead.tolist()],
            )
            fault("segment.before")
        fault("segment.after")

    def _clear(self, collection_id: int, home: Path, kept: str | None) -> None:
        """Remove every folder but the published one's, and one that is kept.

        Files still mapped live on until closed, where the file system is this machine's.
        """
        with snapshot(self._database) as connection:
            _, name = state(connection, collection_id)
        for folder in home.iterdir() if home.is_dir() else ():
            if folder.name not in (name, kept):
                shutil.rmtree(folder, ignore_errors=True)


Refresh = Callable[[int, Progress | None, Pause | None], bool]
# Lets a thread that answers a question have its turn, after each batch; chosen, not measured.
_REST_S = 0.0005


class Background:
    """Refresh collections one after the other, on a thread that is started when first asked."""

    def __init__(self, refresh: Refresh) -> None:
        self._refresh = refresh
        self._waiting: list[int] = []
        self._changed = threading.Condition()
        self._closing = False
        self._busy = False
        self._thread: threading.Thread | None = None

    def ask(self, collection_id: int) -> None:
        """Have a collection refreshed soon; asking again before that changes nothing."""
        with self._changed:
            if self._closing or collection_id in self._waiting:
                return
            self._waiting.append(collection_id)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="segments", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def wait(self) -> None:
        """Wait until nothing is left to do."""
        with self._changed:
            self._changed.wait_for(lambda: self._closing or not (self._waiting or self._busy))

    def close(self) -> None:
        """Cancel the running build and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closing or self._waiting)
                if self._closing:
                    return
                collection_id = self._waiting.pop(0)
                self._busy = True
            # A segment only makes searches faster; the next ingest or `carrel doctor` tells.
            with contextlib.suppress(Cancelled, CarrelError, sqlite3.Error):
                self._refresh(collection_id, None, self._pause)

    def _pause(self) -> None:
        if self._closing:
            raise Cancelled
        time.sleep(_REST_S)
