"""Which rows a caller may see: the permission filter as arrays, remembered within one view.

The key of a mask is the SQL condition with its parameters, as stores.permissions gives it, so that
no two rights can share a mask; it lives in the view of one index version, and goes with it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from core.auth import AuthContext
from stores.permissions import permission_filter
from stores.segments.types import Booleans, Floats, Integers

Key = tuple[str, tuple[tuple[str, object], ...]]


@dataclass(frozen=True)
class Selection:
    """Hold `count` rows: all (`keep` is None), those kept, or `rows` where they are few."""

    count: int
    keep: Booleans | None
    rows: Integers | None

    def numbers(self) -> Integers:
        """Return the numbers of the selected rows, ascending."""
        import numpy as np

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
        import numpy as np

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
    """Hold what masks need of all rows; None means that all are alive, or have a vector."""

    documents: Integers
    alive: Booleans | None
    has_vector: Booleans | None


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
    ) -> Mask:
        """Return the mask of these rights; `connection` must be in the view's snapshot."""
        condition, parameters = permission_filter(auth, collection_id, sources)
        key = (condition, tuple(sorted(parameters.items())))
        with self._lock:
            known = self._masks.get(key)
            if known is not None:
                self._masks.move_to_end(key)
                return known
        documents = _documents(connection, condition, parameters)
        mask = self._mask(documents, rows)
        with self._lock:
            self._masks[key] = mask
            if len(self._masks) > self._limit:
                self._masks.popitem(last=False)
        return mask

    def _mask(self, visible: Integers, rows: RowFacts) -> Mask:
        import numpy as np

        keep = np.isin(rows.documents, visible)
        if rows.alive is not None:
            keep &= rows.alive
        seen = self._selection(keep)
        if rows.has_vector is None:
            return Mask(seen, seen)
        return Mask(seen, self._selection(keep & rows.has_vector))

    def _selection(self, keep: Booleans) -> Selection:
        import numpy as np

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
    import numpy as np

    query = f"SELECT group_concat(d.id) FROM documents d WHERE {condition}"  # bound parameters
    found = connection.execute(query, parameters).fetchone()[0]
    return np.fromstring(found or "", dtype=np.int64, sep=",")
