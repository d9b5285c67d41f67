"""A full check that begins after the opening, while questions are answered already.

No answer may be wrong in silence meanwhile. What becomes evidence is compared with its sums when it
is read, in any case; a first look covers what is not: documents where they are listed or rights
decide, collections, keys, segments, and a sample of searches. Whatever it finds, the full check
comes first. Otherwise answers say that the check is under way, nothing is written before the
structure of the catalogue is known, and what was remembered is forgotten at the end.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING

from core.errors import CarrelError
from stores.integrity.findings import dead_but_alive
from stores.sqlite.catalogue import Collection
from stores.sqlite.sums import COLLECTION, DOCUMENT, KEY
from stores.sqlite.writer import bump

if TYPE_CHECKING:
    from stores.store import StoreParts

UNDER_WAY = "the data directory is still being checked: what is damaged may be missing from answers"
MENDED = (
    "the check found an index damaged, which was rebuilt since: what was asked before may have"
    " lacked passages; ask again"
)
_ROWS = (
    f"documents d WHERE d.sum IS NOT {DOCUMENT}",
    f"collections o WHERE o.sum IS NOT {COLLECTION}",
    f"api_keys k WHERE k.sum IS NOT {KEY}",
    "quarantine",
)


class DeferredCheck:
    """A full integrity check that is begun after opening and run later, by `finish`."""

    def __init__(self, store: StoreParts, missed: Callable[[Collection], str]) -> None:
        """Take a sample of a collection by `missed`, which returns what is wrong, or ""."""
        self._store = store
        self._missed = missed
        self._condition = store.database.condition
        self._content: Callable[[], bool] | None = None

    @property
    def pending(self) -> bool:
        """Tell whether there is a check that has still to end."""
        return self._content is not None

    def may_begin(self) -> bool:
        """Take the first look, which writes nothing; return whether all looks intact."""
        store = self._store
        try:
            collections = store.catalogue.collections()
            reader = store.database.read()
            return not (
                any(reader.execute(f"SELECT 1 FROM {rows} LIMIT 1").fetchone() for rows in _ROWS)
                or dead_but_alive(reader)
                or store.search.problems(collections)
                or any(map(self._missed, collections))
            )
        except (sqlite3.DatabaseError, CarrelError):
            return False

    def begin(self, frame: Callable[[], None], content: Callable[[], bool]) -> None:
        """Defer `frame`, the check of the structure, and `content`, that of all else.

        `content` returns whether something derived was rebuilt.
        """
        self._content = content
        self._condition.report("under way", UNDER_WAY)
        self._store.database.write_barrier.close(frame)

    def finish(self) -> None:
        """Do the check here, unless it is done; answers go on beside it."""
        if self._content is None:
            return
        database = self._store.database
        database.write_barrier.wait()
        with self._store.ingesting:
            if self._content is None:  # another thread has done it meanwhile
                return
            if self._content():
                self._condition.report("mended", MENDED)
            if not self._condition.read_only:
                with database.write() as connection:
                    bump(connection)
            self._content = None
            self._condition.clear("under way")
