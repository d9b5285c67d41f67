"""Search segments: the best visible chunks by words and by vector, under a permission mask."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection as AbstractCollection
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from core.auth import AuthContext
from core.errors import CallerError
from core.settings import Settings
from stores.segments.build import Background, Builder, Pause
from stores.segments.channels import Channels, Links, Name, find_links
from stores.segments.rows import StoredVectors, models_of, row_ids, snapshot, state, tuples
from stores.segments.types import Candidates, Floats, Progress
from stores.segments.view import CollectionView
from stores.segments.views import Views
from stores.sqlite.catalogue import Collection
from stores.sqlite.database import Database
from stores.sqlite.fulltext import FullText

if TYPE_CHECKING:
    from stores.index.tracking import TrackedVectors


class _Facts(NamedTuple):
    """Hold the facts that a collection's documents share at one index version."""

    version: int
    languages: frozenset[str]
    models: tuple[str, ...]


class SegmentSearch:
    """Search the segments of one data directory; safe to use from many threads."""

    def __init__(
        self,
        folder: Path,
        folders: tuple[str, ...],
        database: Database,
        fulltext: FullText,
        model: str,
        settings: Settings,
        tracked: TrackedVectors | None = None,
    ) -> None:
        """Keep segments of `model` in the first of `folders` in `folder`; nothing is opened yet.

        With `tracked` they hold words alone, and vectors are where that says, in other `folders`.
        """
        self.folders = folders
        folder = folder / folders[0]
        stored = partial(StoredVectors, database, model) if tracked else None
        self._tracked = tracked
        self._database = database
        self._settings = settings
        self._fulltext = fulltext
        self._views = Views(database, folder, model, settings, stored)
        self._builder = Builder(database, folder, model, settings, stored)
        self._background = Background(self._refresh)
        self._channels = Channels(fulltext, tracked)
        self._model = model
        self._known: dict[int, _Facts] = {}

    def candidates(
        self,
        auth: AuthContext,
        collection_id: int,
        *,
        terms: Sequence[AbstractCollection[str]],
        vector: Floats | None,
        pool: int,
        sources: Sequence[str] = (),
        kinds: Sequence[str] = (),
        term_weights: Sequence[float] | None = None,
    ) -> Candidates:
        weights = weigh_terms(terms, term_weights)
        while True:
            with self._view(collection_id) as (view, connection):
                mask = view.masks.find(connection, auth, view, sources, kinds)
                return self._channels.search(view, connection, mask, weights, vector, pool, kinds)

    def vectors(self, collection_id: int, chunk_ids: Sequence[str]) -> Floats:
        while True:
            with self._view(collection_id) as (view, connection):
                found = np.full((len(chunk_ids), view.dimension), np.nan, dtype=np.float32)
                ids = row_ids(connection, collection_id, chunk_ids)
                wanted = np.array([ids.get(key, -1) for key in chunk_ids], dtype=np.int64)
                rows, live = view.places(wanted)
                found[live] = view.vectors(rows[live])
                return found

    def sentence_vectors(self, collection_id: int, chunk_ids: Sequence[str]) -> dict[str, Floats]:
        while True:
            with self._view(collection_id) as (view, connection):
                ids = row_ids(connection, collection_id, chunk_ids)
                rows, live = view.places(np.array([ids.get(key, -1) for key in chunk_ids]))
                places = zip(chunk_ids, rows.tolist(), live.tolist(), strict=True)
                found = {key: (view.sentence_rows(row), row) for key, row, alive in places if alive}
                return {
                    key: rows if len(rows) else view.vectors(np.array([row]))
                    for key, (rows, row) in found.items()
                }

    def links(
        self,
        auth: AuthContext,
        collection_id: int,
        *,
        names: Sequence[Name],
        words: Sequence[AbstractCollection[str]],
        seeds: Sequence[str],
        limit: int,
        sources: Sequence[str] = (),
        kinds: Sequence[str] = (),
    ) -> Links | None:
        """Return the visible chunks that say these names, None where FTS5 answers for words.

        `seeds` are chunk ids that the caller may see; a seed that is gone covers nothing.
        """
        while True:
            with self._view(collection_id) as (view, connection):
                if not view.words:
                    return None
                mask = view.masks.find(connection, auth, view, sources, kinds)
                ids = row_ids(connection, collection_id, seeds)
                rows = np.array([ids.get(key, -1) for key in seeds], dtype=np.int64)
                return find_links(view, mask.visible, names, words, rows, limit)

    def languages(self, collection_id: int) -> frozenset[str]:
        return self._facts(collection_id).languages

    def models(self, collection_id: int) -> tuple[str, ...]:
        return self._facts(collection_id).models

    def idf(self, collection_id: int, terms: Sequence[str]) -> dict[str, float]:
        while True:
            with self._view(collection_id) as (view, connection):
                if not view.words:
                    return self._fulltext.inverse_frequencies(collection_id, terms)
                return {term: log(1 + view.live / (1 + view.frequency(term))) for term in terms}

    def shares(self, collection_id: int, terms: Sequence[str]) -> dict[str, float]:
        while True:
            with self._view(collection_id) as (view, connection):
                rows = max(1, view.live)
                if view.words:
                    return {term: view.frequency(term) / rows for term in terms}
                found = self._fulltext.frequencies(collection_id, terms)
                return {term: found[term] / rows for term in terms}

    def write_new(self, collection_id: int) -> None:
        if self._tracked is not None:
            self._tracked.write_new(collection_id)

    def refresh(self, collection: Collection, progress: Progress | None = None) -> bool:
        return self._refresh(collection.id, progress, None)

    def _refresh(self, collection_id: int, progress: Progress | None, pause: Pause | None) -> bool:
        if self._tracked is not None:
            self._tracked.settle(collection_id)
        return self._builder.refresh(collection_id, progress, pause)

    def rebuild(self, collection: Collection, progress: Progress | None = None) -> bool:
        self._views.forget(collection.id)
        if self._tracked is not None:
            self._tracked.rebuild(collection.id, progress)
        return self._builder.rebuild(collection.id, progress)

    def erase(self, collection: Collection, progress: Progress | None = None) -> None:
        self.rebuild(collection, progress)
        if self._tracked is not None:
            self._tracked.index.compact(self._settings.storage.erase_wait_s)

    def remove(self, collection_id: int) -> None:
        self._views.forget(collection_id)
        self._builder.remove(collection_id)
        if self._tracked is not None:
            self._tracked.remove(collection_id)
            self._tracked.index.compact(self._settings.storage.erase_wait_s)

    def refresh_in_background(self, collection: Collection) -> None:
        self._background.ask(collection.id)

    def problems(self, collections: Sequence[Collection]) -> list[str]:
        found = [line for one in collections for line in self._builder.problems(one)]
        if self._tracked is not None:
            found += filter(None, map(self._tracked.problem, collections))
        return found

    @property
    def torn(self) -> str:
        """Return why files of vectors are known to be damaged, "" for not at all."""
        return self._tracked.index.torn if self._tracked is not None else ""

    def doubt(self, reason: str) -> None:
        if self._tracked is not None:
            self._tracked.index.doubt(reason)

    @property
    def server(self) -> str:
        return self._tracked.index.server if self._tracked is not None else ""

    def check_server(self, collection: Collection) -> None:
        if self.server and self._tracked is not None:
            self._tracked.index.count(collection.id)

    def warnings(self) -> list[str]:
        trouble = self._tracked.trouble if self._tracked is not None else ""
        return [f"all vectors were compared: {trouble}"] if trouble else []

    def close(self) -> None:
        self._background.close()
        self._views.close()
        if self._tracked is not None:
            self._tracked.index.close()

    def _facts(self, collection_id: int) -> _Facts:
        with snapshot(self._database) as connection:
            version, _ = state(connection, collection_id)
            known = self._known.get(collection_id)
            if known is None or known.version != version:
                query = "SELECT DISTINCT language FROM documents WHERE collection_id = ?"
                rows = tuples(connection, query, (collection_id,))
                models = models_of(connection, collection_id, self._model)
                known = _Facts(version, frozenset(row[0] for row in rows), models)
                self._known[collection_id] = known
            return known

    @contextmanager
    def _view(self, collection_id: int) -> Iterator[tuple[CollectionView, sqlite3.Connection]]:
        """Give the current view; leave out a segment whose arrays contradict each other.

        Then the block ends without an error and is to be run again: the next view has no segment.
        """
        with self._views.current(collection_id) as (view, connection):
            try:
                yield view, connection
            except (IndexError, ValueError, MemoryError):  # places, lengths or sizes of nowhere
                if view.segment is None:
                    raise
                self._views.forget(collection_id, "its arrays are damaged")


def weigh_terms(
    terms: Sequence[AbstractCollection[str]], weights: Sequence[float] | None
) -> dict[str, float]:
    """Return each term once, with the largest weight of the groups it is in."""
    given = [1.0] * len(terms) if weights is None else list(weights)
    if len(given) != len(terms):
        raise CallerError(
            "there must be one weight per group of terms",
            value=f"{len(given)} weights, {len(terms)} groups",
            hint="give the weights of the same query",
        )
    found: dict[str, float] = {}
    for group, weight in zip(terms, given, strict=True):
        for term in sorted(group):
            found[term] = max(found.get(term, 0.0), weight)
    return {term: weight for term, weight in found.items() if weight > 0}
