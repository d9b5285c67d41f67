"""Which rows a caller may see: the permission filter as arrays, remembered within one view.

The key of a mask is the SQL condition with its parameters, as stores.permissions gives it, so that
no two rights can share a mask; it lives in the view of one index version, and goes with it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from core.auth import AuthContext
from stores.segments.types import Booleans, Floats, Integers
from stores.sqlite.permissions import permission_filter

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

    def ranked(self, scores: Floats, least: float) -> Floats:
        """Return what is ranked: all scores, `least` where a row is not selected."""
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


@dataclass(frozen=True)
class RowFacts:
    """Hold what masks need of all rows; None means that all are alive, or have a vector.

    `equal` are the numbers of rows that say the same as others, first ones first, and their groups.
    """

    ids: Integers
    documents: Integers
    alive: Booleans | None
    has_vector: Booleans | None
    equal: tuple[Integers, Integers] | None = None


class Masks:
    """Remember the masks of one view, the latest `limit` of them."""

    def __init__(self, limit: int, gather_share: float) -> None:
        """Pick rows by number where fewer than `gather_share` of all are visible."""
        self._limit = limit
        self._share = gather_share
        self._masks: OrderedDict[Key, Mask] = OrderedDict()
        self._lock = threading.Lock()

    def find(
        self,
        connection: sqlite3.Connection,
        auth: AuthContext,
        collection_id: int,
        sources: Sequence[str],
        rows: RowFacts,
        kinds: Sequence[str] = (),
    ) -> Mask:
        """Return the mask of these rights; `connection` must be in the view's snapshot.

        `kinds` of chunks narrow it, empty for all. Of rows that say the same, only the first that
        is selected stays.
        """
        condition, parameters = permission_filter(auth, collection_id, sources, sums=False)
        key = (condition, tuple(sorted(parameters.items())), tuple(sorted(kinds)))
        with self._lock:
            known = self._masks.get(key)
            if known is not None:
                self._masks.move_to_end(key)
                return known
        documents = _documents(connection, condition, parameters)
        of_kind = _of_kinds(connection, collection_id, kinds) if kinds else None
        mask = self._mask(documents, of_kind, rows)
        with self._lock:
            self._masks[key] = mask
            if len(self._masks) > self._limit:
                self._masks.popitem(last=False)
        return mask

    def _mask(self, visible: Integers, of_kind: Integers | None, rows: RowFacts) -> Mask:
        keep = np.isin(rows.documents, visible)
        if rows.alive is not None:
            keep &= rows.alive
        if of_kind is not None:
            keep &= np.isin(rows.ids, of_kind)
        if rows.equal is not None:
            hide_repeats(keep, *rows.equal)
        seen = self._selection(keep)
        if rows.has_vector is None:
            return Mask(seen, seen)
        return Mask(seen, self._selection(keep & rows.has_vector))

    def _selection(self, keep: Booleans) -> Selection:
        count = int(np.count_nonzero(keep))
        if count == len(keep):
            return Selection(count, None, None)
        if count < self._share * len(keep):
            return Selection(count, None, np.flatnonzero(keep))
        return Selection(count, keep, None)


def _documents(
    connection: sqlite3.Connection, condition: str, parameters: dict[str, object]
) -> Integers:
    """Return the row ids of the documents that meet the condition.

    SQLite joins them into one text: parsing it takes a third of the time of fetching rows.
    """
    query = f"SELECT group_concat(d.id) FROM documents d WHERE {condition}"  # bound parameters
    found = connection.execute(query, parameters).fetchone()[0]
    return np.fromstring(found or "", dtype=np.int64, sep=",")


def _of_kinds(connection: sqlite3.Connection, collection_id: int, kinds: Sequence[str]) -> Integers:
    """Return the row ids of the chunks of these kinds."""
    marks = ", ".join("?" * len(kinds))
    query = f"SELECT group_concat(id) FROM chunks WHERE collection_id = ? AND kind IN ({marks})"
    found = connection.execute(query, (collection_id, *kinds)).fetchone()[0]
    return np.fromstring(found or "", dtype=np.int64, sep=",")


def hide_repeats(keep: Booleans, rows: Integers, groups: Integers) -> None:
    """Take out all but the first kept row of each group."""
    kept = np.flatnonzero(keep[rows])
    _, first = np.unique(groups[kept], return_index=True)
    keep[rows[np.delete(kept, first)]] = False
