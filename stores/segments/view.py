"""All live rows of one collection at one index version, and which of them a caller may see.

Rows are numbered 0..n−1, those of the segment first, then what is newer. A view never changes. A
mask is remembered by its SQL condition with its parameters, so that no two rights can share one; it
lives in the view of one index version, and goes with it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from cachetools import LRUCache

from core.auth import AuthContext
from core.errors import ModelError
from stores.segments.types import Booleans, Floats, IndexedRows, Integers, Names, TermWeights
from stores.sqlite.permissions import IS_ROW, permission_filter

Key = tuple[str, tuple[tuple[str, object], ...], tuple[str, ...]]


@dataclass(frozen=True)
class Selection:
    """Hold `count` rows: all (`keep` is None), those kept, or `rows` where they are few.

    `sample` keeps vectors of some of the rows, once they were read.
    """

    count: int
    keep: Booleans | None
    rows: Integers | None
    sample: list[Floats] = field(default_factory=list, compare=False)

    def numbers(self) -> Integers:
        """Return the numbers of the selected rows, ascending."""
        if self.rows is not None:
            return self.rows
        return np.arange(self.count) if self.keep is None else np.flatnonzero(self.keep)

    def values(self, scores: Floats) -> Floats:
        """Return the scores of the selected rows, in their order."""
        if self.rows is not None:
            return scores[self.rows]
        return scores if self.keep is None else scores[self.keep]

    def rank_scores(self, scores: Floats, least: float) -> Floats:
        """Return the scores to rank: all of them, `least` where a row is not selected."""
        if self.rows is not None:
            return scores[self.rows]
        if self.keep is None:
            return scores
        return np.where(self.keep, scores, np.float32(least))

    def original(self, places: Integers) -> Integers:
        """Return the row numbers of places in what `ranked` returned."""
        return places if self.rows is None else self.rows[places]


@dataclass(frozen=True)
class Mask:
    """Hold the rows a caller sees, and those of them that have a vector."""

    visible: Selection
    embedded: Selection


# Vectors of a smaller visible share are picked, not scanned; chosen, no measurement is kept.
GATHER_SHARE = 0.1
MASKS = 32  # permission masks remembered per collection; chosen, not measured


class Masks:
    """Remember the latest masks of one view."""

    def __init__(self) -> None:
        self._masks: LRUCache[Key, Mask] = LRUCache(MASKS)
        self._lock = threading.Lock()

    def find(
        self,
        connection: sqlite3.Connection,
        auth: AuthContext,
        view: CollectionView,
        sources: Sequence[str],
        kinds: Sequence[str] = (),
    ) -> Mask:
        """Return the mask of these rights; `connection` must be in the view's snapshot.

        `kinds` of chunks narrow it, empty for all. Of rows that say the same, only the first that
        is selected stays. The rows of tables are left out: their document has them as its text.
        """
        condition, parameters = permission_filter(auth, view.collection_id, sources, sums=False)
        key = (condition, tuple(sorted(parameters.items())), tuple(sorted(kinds)))
        with self._lock:
            known = self._masks.get(key)
        if known is None:
            keep = np.isin(
                view.documents,
                _ids(connection, f"documents d WHERE {condition} AND NOT {IS_ROW}", parameters),
            )
            if view.alive is not None:
                keep &= view.alive
            if kinds:
                named = {f"kind{n}": kind for n, kind in enumerate(kinds)}
                of_kind = f"chunks d WHERE collection_id = :id AND kind IN (:{', :'.join(named)})"
                keep &= np.isin(
                    view.ids, _ids(connection, of_kind, {"id": view.collection_id, **named})
                )
            if view.equal is not None:
                places, live = view.places(view.equal[0])
                hide_repeats(keep, places[live], view.equal[1][live])
            seen = embedded = self._selection(keep)
            if view.has_vector is not None:
                embedded = self._selection(keep & view.has_vector)
            known = Mask(seen, embedded)
            with self._lock:
                self._masks[key] = known
        return known

    def _selection(self, keep: Booleans) -> Selection:
        count = int(np.count_nonzero(keep))
        if count == len(keep):
            return Selection(count, None, None)
        if count < GATHER_SHARE * len(keep):
            return Selection(count, None, np.flatnonzero(keep))
        return Selection(count, keep, None)


def _ids(connection: sqlite3.Connection, rows: str, values: dict[str, object]) -> Integers:
    """Return the ids of rows d, which `rows` says in SQL with bound values.

    SQLite joins them into one text: parsing it takes a third of the time of fetching rows.
    """
    found = connection.execute(f"SELECT group_concat(d.id) FROM {rows}", values).fetchone()[0]
    return np.fromstring(found or "", dtype=np.int64, sep=",")


def hide_repeats(keep: Booleans, rows: Integers, groups: Integers) -> None:
    """Take out all but the first kept row of each group."""
    kept = np.flatnonzero(keep[rows])
    _, first = np.unique(groups[kept], return_index=True)
    keep[rows[np.delete(kept, first)]] = False


Array = TypeVar("Array", Integers, Floats, Booleans, Names)
_BLOCK = 4096  # rows whose exact cosines are computed at once: 12 MB at 384 numbers in float64


@dataclass(frozen=True)
class Late:
    """Hold vectors that rows of a segment got after it was built: `rows` and (m, dimension)."""

    rows: Integers
    vectors: Floats


@dataclass(frozen=True)
class CollectionView:
    """Hold a segment (or none) and the newer rows; `alive` is None when no row is dead.

    `words` is False where FTS5 has to answer for words. `equal` are the ids of rows that say the
    same as others, first ones first, and the group of each.
    """

    collection_id: int
    version: int
    segment: str | None
    parts: tuple[IndexedRows, ...]
    alive: Booleans | None
    late: Late
    words: bool
    masks: Masks
    notes: tuple[str, ...] = field(default=())
    equal: tuple[Integers, Integers] | None = None

    @cached_property
    def rows(self) -> int:
        """Return the number of rows, dead ones included."""
        return sum(len(part.ids) for part in self.parts)

    @cached_property
    def live(self) -> int:
        """Return the number of live rows."""
        return self.rows if self.alive is None else int(self.alive.sum())

    @cached_property
    def ids(self) -> Integers:
        """Return the row ids, ascending."""
        return joined([part.ids for part in self.parts])

    @cached_property
    def documents(self) -> Integers:
        """Return the row id of each row's document."""
        return joined([part.documents for part in self.parts])

    @cached_property
    def has_vector(self) -> Booleans | None:
        """Return which rows have a vector, None when all have."""
        has: Booleans = joined([part.has_vector for part in self.parts])
        if len(self.late.rows):
            has = has.copy()
            has[self.late.rows] = True
        return None if has.all() else has

    @cached_property
    def dimension(self) -> int:
        """Return the dimension of the vectors, 0 when there are none."""
        blocks = (*(part.vectors for part in self.parts), self.late.vectors)
        return int(max(block.shape[1] for block in blocks))

    def places(self, ids: Integers) -> tuple[Integers, Booleans]:
        """Return the row number of each row id, and whether it is a live row at all."""
        if not self.rows:
            return np.zeros(len(ids), dtype=np.int64), np.zeros(len(ids), dtype=np.bool_)
        rows = np.minimum(np.searchsorted(self.ids, ids), self.rows - 1)
        known = self.ids[rows] == ids
        return rows, known if self.alive is None else known & self.alive[rows]

    def chunk_ids(self, rows: Integers) -> Names:
        """Return the chunk ids of rows as UTF-8 bytes."""
        found = self._take(rows, lambda part, places: part.chunk_ids[places])
        return np.zeros(0, dtype="S1") if found is None else found

    def vectors(self, rows: Integers) -> Floats:
        """Return vectors of shape (len(rows), dimension), NaN where a row has none."""
        found = np.full((len(rows), self.dimension), np.nan, dtype=np.float32)
        for start, part in self._starts():
            inside = (rows >= start) & (rows < start + len(part.ids))
            if inside.any() and part.vectors.shape[1] == self.dimension:
                found[inside] = part.vectors[rows[inside] - start]
        if len(self.late.rows):
            late = np.searchsorted(self.late.rows, rows).clip(max=len(self.late.rows) - 1)
            inside = self.late.rows[late] == rows
            found[inside] = self.late.vectors[late[inside]]
        return found

    def scan(self, vector: Floats) -> Floats:
        """Return the cosine of every row with a unit vector, NaN where a row has none."""
        cosines = np.empty(self.rows, dtype=np.float32)
        for start, part in self._starts():
            place = cosines[start : start + len(part.ids)]
            if part.vectors.shape[1] == len(vector):
                np.dot(part.vectors, vector, out=place)
            else:
                place.fill(np.nan)
        if len(self.late.rows):
            cosines[self.late.rows] = self.late.vectors @ vector
        return cosines

    def exact(self, rows: Integers, vector: Floats) -> Floats:
        """Return cosines that do not depend on which other rows are asked for.

        A matrix product gives equal rows sums that differ in the last bits.
        """
        wide = vector.astype(np.float64)
        found = np.full(len(rows), np.nan, dtype=np.float32)
        if self.dimension != len(vector):
            return found
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            found[block] = (self.vectors(rows[block]) * wide).sum(axis=1)
        return found

    def sentences(self, rows: Integers, vector: Floats) -> Floats:
        """Return the best cosine over each row's sentences, NaN where it has none."""

        def best(part: IndexedRows, places: Integers) -> Floats:
            return part.sentences.best(places, vector)

        found = self._take(rows, best)
        return np.zeros(0, dtype=np.float32) if found is None else found

    def sentence_rows(self, row: int) -> Floats:
        """Return the unit vectors of a row's sentences, shape (m, dimension)."""
        for start, part in self._starts():
            if start <= row < start + len(part.ids):
                return part.sentences.rows(row - start)
        raise IndexError(row)

    def word_scores(self, terms: TermWeights) -> Floats:
        """Return the BM25 score of every row, summed over weighted terms."""
        scores = np.zeros(self.rows, dtype=np.float32)
        for start, part in self._starts():
            if part.postings is not None:
                part.postings.add(terms, scores[start : start + len(part.ids)])
        return scores

    def containing(self, term: str) -> Integers:
        """Return the rows that contain a term, dead ones included, ascending."""
        found = [
            part.postings.containing(term).astype(np.int64) + start
            for start, part in self._starts()
            if part.postings is not None
        ]
        return joined(found) if found else np.zeros(0, dtype=np.int64)

    def frequency(self, term: str) -> int:
        """Count the live rows that contain a term."""
        total = 0
        for start, part in self._starts():
            if part.postings is not None:
                live = None if self.alive is None else self.alive[start : start + len(part.ids)]
                total += part.postings.frequency(term, live)
        return total

    def check_vector(self, vector: Any) -> Floats:  # noqa: ANN401 - anything array-like
        """Return the vector of a question as float32; raise ModelError when it does not fit."""
        checked = np.ascontiguousarray(vector, dtype=np.float32)
        expected = (self.dimension or checked.size,)
        if checked.shape != expected or not np.isfinite(checked).all():
            raise ModelError(
                f"a question's vector must be {expected[0]} finite numbers, as the documents' are",
                value=f"shape {checked.shape}",
                hint="check the model's files, then run `carrel reindex`",
            )
        return checked

    def _starts(self) -> Iterator[tuple[int, IndexedRows]]:
        start = 0
        for part in self.parts:
            if len(part.ids):
                yield start, part
            start += len(part.ids)

    def _take(self, rows: Integers, take: Callable[[IndexedRows, Integers], Array]) -> Array | None:
        """Take something from each part for ascending rows, and join it."""
        found = []
        for start, part in self._starts():
            low, high = np.searchsorted(rows, (start, start + len(part.ids)))
            if low < high:
                found.append(take(part, rows[low:high] - start))
        return joined(found) if found else None


def joined(arrays: Sequence[Array]) -> Array:
    """Return arrays as one, without a copy where only one has rows."""
    filled = [array for array in arrays if len(array)] or list(arrays[:1])
    return filled[0] if len(filled) == 1 else np.concatenate(filled)
