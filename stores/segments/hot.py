"""Hot search: the best visible chunks of both channels, from arrays, under a permission mask."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from collections.abc import Collection as AbstractCollection
from math import log
from pathlib import Path
from typing import TypeVar

from core.auth import AuthContext
from core.errors import CallerError
from core.settings import Settings
from stores.catalogue import Collection
from stores.chroma import ChromaVectors
from stores.database import Database
from stores.fulltext import FullText
from stores.segments.background import Background
from stores.segments.build import Builder
from stores.segments.channels import Channels
from stores.segments.links import Links, Name, Wanted, find_links, hub_size
from stores.segments.recipe import Recipe
from stores.segments.truth import models_of, row_ids, snapshot, state, tuples
from stores.segments.types import Candidates, Floats, Progress
from stores.segments.view import View
from stores.segments.views import Views

T = TypeVar("T")
FOLDER = "segments"


class HotSearch:
    """Search the segments of one data directory; safe to use from many threads."""

    def __init__(
        self,
        folder: Path,
        database: Database,
        fulltext: FullText,
        chroma: ChromaVectors,
        model: str,
        settings: Settings,
    ) -> None:
        """Keep segments of `model` under `folder`; nothing is opened yet."""
        recipe = Recipe.of(model, settings)
        self._database = database
        self._settings = settings
        self._fulltext = fulltext
        self._views = Views(database, folder / FOLDER, recipe, settings)
        self._builder = Builder(database, folder / FOLDER, recipe, settings)
        self._background = Background(self._builder.refresh)
        self._channels = Channels(fulltext, chroma, settings)
        self._model = model
        self._models: dict[int, tuple[int, tuple[str, ...]]] = {}
        self._languages: dict[int, tuple[int, frozenset[str]]] = {}

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
        """Return the `pool` best visible chunks by words and by vector, with all their scores.

        `terms` are the alternatives for each word of the question; an indexed one adds its score
        once, times the largest of its groups' `term_weights`. `vector` has length 1.
        """
        weights = weighted_terms(terms, term_weights)

        def search(view: View, connection: sqlite3.Connection) -> Candidates:
            mask = view.masks.find(connection, auth, collection_id, sources, view.facts, kinds)
            return self._channels.search(view, connection, mask, weights, vector, pool)

        return self._with_view(collection_id, search)

    def vectors(self, collection_id: int, chunk_ids: Sequence[str]) -> Floats:
        """Return vectors of shape (len(chunk_ids), dimension), NaN rows for those without one."""

        def look_up(view: View, connection: sqlite3.Connection) -> Floats:
            import numpy as np

            found = np.full((len(chunk_ids), view.dimension), np.nan, dtype=np.float32)
            ids = row_ids(connection, collection_id, chunk_ids)
            wanted = np.array([ids.get(key, -1) for key in chunk_ids], dtype=np.int64)
            rows, live = view.places(wanted)
            found[live] = view.vectors(rows[live])
            return found

        return self._with_view(collection_id, look_up)

    def sentence_vectors(self, collection_id: int, chunk_ids: Sequence[str]) -> dict[str, Floats]:
        """Return the unit vectors of the sentences of chunks, in their order, by chunk id.

        What the view does not hold is left out; of a single sentence it is the chunk's own vector.
        """

        def look_up(view: View, connection: sqlite3.Connection) -> dict[str, Floats]:
            import numpy as np

            ids = row_ids(connection, collection_id, chunk_ids)
            rows, live = view.places(np.array([ids.get(key, -1) for key in chunk_ids]))
            held = zip(chunk_ids, rows.tolist(), live.tolist(), strict=True)
            found = {key: (view.sentence_rows(row), row) for key, row, alive in held if alive}
            return {
                key: rows if len(rows) else view.vectors(np.array([row]))
                for key, (rows, row) in found.items()
            }

        return self._with_view(collection_id, look_up)

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

        def look_up(view: View, connection: sqlite3.Connection) -> Links | None:
            import numpy as np

            if not view.words:
                return None
            mask = view.masks.find(connection, auth, collection_id, sources, view.facts, kinds)
            ids = row_ids(connection, collection_id, seeds)
            rows = np.array([ids.get(key, -1) for key in seeds], dtype=np.int64)
            most = hub_size(mask.visible.count, self._settings)
            return find_links(view, mask.visible, Wanted(names, words, rows, most, limit))

        return self._with_view(collection_id, look_up)

    def languages(self, collection_id: int) -> frozenset[str]:
        """Return the languages of a collection's documents."""
        with snapshot(self._database) as connection:
            version, _ = state(connection, collection_id)
            known = self._languages.get(collection_id)
            if known is None or known[0] != version:
                query = "SELECT DISTINCT language FROM documents WHERE collection_id = ?"
                rows = tuples(connection, query, (collection_id,))
                known = version, frozenset(row[0] for row in rows)
                self._languages[collection_id] = known
            return known[1]

    def models(self, collection_id: int) -> tuple[str, ...]:
        """Return the models of a collection's vectors, this one's alone where it has any."""
        with snapshot(self._database) as connection:
            version, _ = state(connection, collection_id)
            known = self._models.get(collection_id)
            if known is None or known[0] != version:
                found = models_of(connection, collection_id, self._model)
                known = self._models[collection_id] = version, found
            return known[1]

    def idf(self, collection_id: int, terms: Sequence[str]) -> dict[str, float]:
        """Return log(1 + N/(1 + df)) of each term over the collection's chunks."""

        def count(view: View, connection: sqlite3.Connection) -> dict[str, float]:
            if not view.words:
                return self._fulltext.inverse_frequencies(collection_id, terms)
            return {term: log(1 + view.live / (1 + view.frequency(term))) for term in terms}

        return self._with_view(collection_id, count)

    def shares(self, collection_id: int, terms: Sequence[str]) -> dict[str, float]:
        """Return in which share of the collection's chunks each term occurs, 0..1."""

        def count(view: View, connection: sqlite3.Connection) -> dict[str, float]:
            rows = max(1, view.live)
            if view.words:
                return {term: view.frequency(term) / rows for term in terms}
            found = self._fulltext.frequencies(collection_id, terms)
            return {term: found[term] / rows for term in terms}

        return self._with_view(collection_id, count)

    def refresh(self, collection: Collection, progress: Progress | None = None) -> bool:
        """Build the segment anew if that is worth it; return whether it was.

        Raises OperatorError when it cannot be written; searches go on without it.
        """
        return self._builder.refresh(collection.id, progress)

    def rebuild(self, collection: Collection, progress: Progress | None = None) -> bool:
        """Build the segment anew whatever there is; return False for a collection too small."""
        self._views.forget(collection.id)
        return self._builder.rebuild(collection.id, progress)

    def remove(self, collection_id: int) -> None:
        """Forget a collection that is gone, in memory and on disk."""
        self._views.forget(collection_id)
        self._builder.remove(collection_id)

    def refresh_in_background(self, collection: Collection) -> None:
        """Let a thread of its own build the segment if that is worth it."""
        self._background.ask(collection.id)

    def problems(self, collections: Sequence[Collection]) -> list[str]:
        """Compare every segment with its check sums and the catalogue; say what to do."""
        return [line for one in collections for line in self._builder.problems(one)]

    def close(self) -> None:
        """Stop building and let go of the segments."""
        self._background.close()
        self._views.close()

    def _with_view(self, collection_id: int, use: Callable[[View, sqlite3.Connection], T]) -> T:
        """Use the current view; a segment whose arrays contradict each other is left out."""
        with self._views.current(collection_id) as (view, connection):
            try:
                return use(view, connection)
            except (IndexError, ValueError, MemoryError):  # places, lengths or sizes of nowhere
                if view.segment is None:
                    raise
                self._views.forget(collection_id, "its arrays are damaged")
        with self._views.current(collection_id) as (view, connection):
            return use(view, connection)


def weighted_terms(
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
