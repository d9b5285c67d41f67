"""Check the parts of a data directory one by one, and rebuild what is derived."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from core.errors import CarrelError
from stores.integrity.findings import (
    damage_problems,
    damaged_parts,
    dead_but_alive,
    fulltext_findings,
    structure_problems,
    threads_problem,
)
from stores.runlog.conversations import THREADS
from stores.segments.views import segment_fallback
from stores.sqlite.catalogue import Collection
from stores.sqlite.fulltext import rebuild_fulltext
from stores.sqlite.sums import Damage, find_damage, find_damaged_records
from stores.sqlite.writer import bump

if TYPE_CHECKING:
    from stores.store import StoreParts


WORDS = (
    "the full text of a collection differs from its passages: some may not be found by their words"
)


class PartChecks:
    """Check the parts of one open store; its condition keeps what is wrong."""

    def __init__(self, parts: StoreParts) -> None:
        self._parts = parts
        self._condition = parts.database.condition
        self.repaired: list[str] = []
        self.damage = Damage()
        self.threads_damaged = False

    def readable_collections(self) -> list[Collection]:
        """Return all collections, none where the catalogue cannot be read."""
        try:
            return self._parts.catalogue.collections()
        except (sqlite3.DatabaseError, CarrelError) as error:
            self._condition.malformed = self._condition.malformed or str(error)
            return []

    def check_structure(self) -> None:
        """Check the structure; indexes and full text are repaired, else nothing is written more."""
        database = self._parts.database
        problems = structure_problems(database.read())
        if not problems:
            return
        try:
            parts = damaged_parts(database.read(), problems)
            if parts is None:  # the tables themselves: nothing is written that could be rescued
                self._condition.malformed = problems[0]
                return
            if "fulltext" in parts:
                for collection in self.readable_collections():
                    rebuild_fulltext(database, collection.id)
            if "indexes" in parts:
                with database.write() as connection:
                    connection.execute("REINDEX")
            left = structure_problems(database.read())
        except (sqlite3.DatabaseError, CarrelError) as error:
            left = [*problems, str(error)]
        if left:
            self._condition.malformed = left[0]
        else:
            self.repaired.append(f"indexes in the catalogue were rebuilt ({problems[0]})")

    def check_rows(self) -> Damage:
        """Check the sums of all rows, keep damaged documents out of sight, and return them."""
        database = self._parts.database
        self._condition.clear("rows ")
        try:
            damage = find_damage(database.read())
            damage.records.update(find_damaged_records(database.read()))
            known = {row[0] for row in database.read().execute("SELECT document FROM quarantine")}
            if known != damage.documents.keys() and not self._condition.read_only:
                with database.write() as connection:
                    connection.execute("DELETE FROM quarantine")
                    connection.executemany(
                        "INSERT INTO quarantine VALUES (?, 'sum')",
                        [(row_id,) for row_id in damage.documents],
                    )
                    bump(connection)
        except sqlite3.DatabaseError as error:
            self._condition.malformed = str(error)
            return Damage()
        for number, problem in enumerate(damage_problems(damage, named=False)):
            self._condition.report(f"rows {number}", problem)
        self.damage = damage
        return damage

    def check_fulltext(self, collection: Collection) -> None:
        """Compare the full text of a collection with its chunks."""
        problem = fulltext_findings(self._parts.database, collection.id).problem()
        if not problem:
            return
        if self._condition.read_only:
            self._condition.report(f"full text {collection.id}", WORDS)
            return
        try:
            rebuild_fulltext(self._parts.database, collection.id)
        except (sqlite3.DatabaseError, CarrelError) as error:
            self._condition.report(f"full text {collection.id}", f"full text: {error}")
            return
        self.repaired.append(f"full text of '{collection.name}' was rebuilt ({problem})")

    def check_segments(self) -> None:
        """Check the files of all search segments and their lists of dead rows."""
        store = self._parts
        stale = set(dead_but_alive(store.database.read()))
        for collection in self.readable_collections():
            problems = store.search.problems([collection])
            if not problems and collection.id not in stale:
                continue
            if self._condition.read_only:
                self._condition.report(*segment_fallback(collection.id))
                continue
            try:
                if collection.id in stale:
                    with store.database.write() as connection:
                        connection.execute(
                            "DELETE FROM dead_chunks WHERE collection_id = ?", (collection.id,)
                        )
                store.search.rebuild(collection)
            except (sqlite3.DatabaseError, CarrelError) as error:
                self._condition.report(segment_fallback(collection.id)[0], str(error))
                continue
            self._condition.clear(segment_fallback(collection.id)[0])
            why = problems[0] if problems else "its list of dead chunks was damaged"
            self.repaired.append(f"the search segment of '{collection.name}' was rebuilt ({why})")

    def check_threads(self) -> None:
        """Check the file of conversations' states; what it has lost is known to their turns."""
        if problem := threads_problem(self._parts.folder / THREADS):
            self.threads_damaged = True
            self._condition.report("threads", problem)
