"""The checks of a data directory: each finds one kind of damage, and repairs what is derived."""

from __future__ import annotations

import re
import shutil
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from core.errors import CarrelError, OperatorError
from stores.folder import ALL_FOLDERS, WORDS
from stores.integrity.condition import check_server
from stores.runlog.conversations import THREADS
from stores.segments.rows import snapshot
from stores.segments.views import segment_fallback
from stores.sqlite.catalogue import Collection
from stores.sqlite.connections import connect
from stores.sqlite.database import Database
from stores.sqlite.fulltext import rebuild_fulltext, table

if TYPE_CHECKING:
    from stores.store import StoreParts

TREE = re.compile(r"(?:On tree page|Tree) (\d+)")
INDEX_SIGNS = ("missing from index", "entries in index", "non-unique entry in index")
COUNTERS = ("index_version", "last_chunks", "last_collections", "last_documents")
LACKING = (
    "the full text of a collection differs from its passages: some may not be found by their words"
)
LINES = 20  # of SQLite's own check that are read; chosen, not measured


@dataclass(frozen=True)
class Defect:
    """Say what is wrong: `why` in short, `lines` to the operator, `warning` to who asks meanwhile.

    `name` is what the condition of the database knows the warning by.
    """

    why: str
    lines: Sequence[str] = ()
    name: str = ""
    warning: str = ""
    collection: Collection | None = None


class Check(ABC):
    """Find one kind of damage to an open store, and repair it as far as it is derived."""

    FAILED: ClassVar[str] = ""  # what the warning of a failed repair begins with

    def __init__(self, parts: StoreParts) -> None:
        self._parts = parts

    @abstractmethod
    def check(self) -> list[Defect]:
        """Return what is wrong; nothing is changed."""

    def repair(self, defect: Defect) -> str:
        """Make what is damaged again; return what was done, "" where that cannot be."""
        return ""

    def settle(self) -> list[str]:
        """Repair what can be and say so; of the rest, answers warn."""
        done, condition = [], self._parts.database.condition
        for defect in self.check():
            repaired, warning = "", defect.warning
            if not condition.read_only:
                try:
                    repaired = self.repair(defect)
                except (sqlite3.DatabaseError, CarrelError) as error:
                    warning = f"{self.FAILED}{error}"
            if repaired:
                condition.clear(defect.name)
                done.append(repaired)
            else:
                condition.report(defect.name, warning)
        return done


def readable_collections(store: StoreParts) -> list[Collection]:
    """Return all collections, none where the catalogue cannot be read."""
    condition = store.database.condition
    try:
        return store.catalogue.collections()
    except (sqlite3.DatabaseError, CarrelError) as error:
        check_server(error)
        condition.malformed = condition.malformed or str(error)
        return []


class StructureCheck(Check):
    """The pages, indexes and references of the catalogue; where tables are damaged, no writes."""

    def check(self) -> list[Defect]:
        """Return what SQLite's own check and those of Carrel's tables find."""
        found = structure_problems(self._parts.database.read())
        return [
            Defect(one, (f"the catalogue is damaged ({one}); restore a backup",)) for one in found
        ]

    def settle(self) -> list[str]:
        """Make indexes and full text again; else nothing is written to the catalogue any more."""
        found = [one.why for one in self.check()]
        if not found:
            return []
        try:
            left = self._rebuild(found)
        except (sqlite3.DatabaseError, CarrelError):
            left = found
        if left:
            self._parts.database.condition.malformed = left[0]
            return []
        return [f"indexes in the catalogue were rebuilt ({found[0]})"]

    def _rebuild(self, found: list[str]) -> list[str]:
        database = self._parts.database
        damaged = damaged_parts(database.read(), found)
        if damaged is None:
            return found
        if "fulltext" in damaged:
            for collection in readable_collections(self._parts):
                rebuild_fulltext(database, collection.id)
        if "indexes" in damaged:
            with database.write() as connection:
                connection.execute("REINDEX")
        return structure_problems(database.read())


def structure_problems(connection: sqlite3.Connection) -> list[str]:
    """Return what `PRAGMA integrity_check` and the checks of Carrel's own tables find.

    Pages are read from the file: those that SQLite remembers may be better than what is there.
    """
    try:
        connection.execute("PRAGMA shrink_memory")
        return _integrity(connection) or _own_problems(connection)
    except sqlite3.DatabaseError as error:
        check_server(error)
        return [str(error)]


def _integrity(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute(f"PRAGMA integrity_check({LINES})").fetchall()
    return [str(row[0]) for row in rows if row[0] != "ok"]


def _own_problems(connection: sqlite3.Connection) -> list[str]:
    found = []
    rows = connection.execute("PRAGMA foreign_key_check").fetchall()
    if rows:
        found.append(f"{len(rows)} rows of {rows[0][0]} belong to a row that is gone")
    values = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    bad = [name for name in COUNTERS if not str(values.get(name, "")).isdigit()]
    return found + [f"the counter {name} is no number" for name in bad[:1]]


def damaged_parts(connection: sqlite3.Connection, problems: list[str]) -> set[str] | None:
    """Return the derived parts that all problems are of: "indexes", "fulltext"; None for others.

    SQLite names the index, or the root page of the tree, that a problem is of.
    """
    rows = connection.execute("SELECT rootpage, type, name FROM sqlite_schema").fetchall()
    roots = {row[0]: (row[1], row[2]) for row in rows}
    found = set()
    for line in (line for problem in problems for line in problem.splitlines()):
        tree = TREE.search(line)
        kind, name = roots.get(int(tree[1]), ("", "")) if tree else ("", "")
        if line.startswith("*** in database") or not line:
            continue
        if kind == "index" or any(sign in line for sign in INDEX_SIGNS):
            found.add("indexes")
        elif kind == "table" and name.startswith("fts_"):
            found.add("fulltext")
        else:
            return None
    return found


@dataclass(frozen=True)
class FulltextFindings:
    """Say how the full text of a collection differs from its chunks; `error` when unreadable."""

    rows: int = 0
    chunks: int = 0
    missing: list[int] = field(default_factory=list)
    orphans: list[int] = field(default_factory=list)
    error: str = ""

    def defect(self, collection: Collection) -> Defect | None:
        """Return what is wrong, None for nothing."""
        why, line = self.error, f"full text of '{collection.name}'"
        if self.error:
            line += f": {self.error}"
        elif self.missing or self.orphans:
            why = f"{len(self.missing)} chunks are missing, {len(self.orphans)} rows have no chunk"
            line += f" has {self.rows} rows for {self.chunks} chunks ({why})"
        else:
            return None
        lines = (f"{line}; run `carrel reindex`",)
        return Defect(why, lines, f"full text {collection.id}: ", LACKING, collection)


class FulltextCheck(Check):
    """The full text of each collection."""

    FAILED = "full text: "

    def check(self) -> list[Defect]:
        """Compare the full text of each collection with its chunks."""
        database = self._parts.database
        every = readable_collections(self._parts)
        found = [fulltext_findings(database, one.id).defect(one) for one in every]
        return [one for one in found if one is not None]

    def repair(self, defect: Defect) -> str:
        """Write the full text of a collection again."""
        assert defect.collection is not None
        rebuild_fulltext(self._parts.database, defect.collection.id)
        return f"full text of '{defect.collection.name}' was rebuilt ({defect.why})"


def fulltext_findings(database: Database, collection_id: int) -> FulltextFindings:
    """Compare the full-text rows of a collection with its chunks, and have FTS5 check itself."""
    name = table(collection_id)
    try:
        with snapshot(database) as connection:
            rows = {row[0] for row in connection.execute(f"SELECT rowid FROM {name}").fetchall()}
            query = "SELECT id FROM chunks WHERE collection_id = ?"
            chunks = {row[0] for row in connection.execute(query, (collection_id,))}
            connection.execute(f"SELECT doc FROM {name}_terms LIMIT 1").fetchone()
        with database.undone() as writer:
            writer.execute(f"INSERT INTO {name} ({name}) VALUES ('integrity-check')")
    except (sqlite3.DatabaseError, OperatorError) as error:  # nor is a damaged catalogue asked
        return FulltextFindings(error=str(error))
    return FulltextFindings(len(rows), len(chunks), sorted(chunks - rows), sorted(rows - chunks))


class IndexCheck(Check):
    """The search index of each collection: its files, its vectors, its list of dead chunks."""

    def __init__(
        self, parts: StoreParts, progress: Callable[[str, int, int], None] | None = None
    ) -> None:
        """Check the index of these parts; an operator who waits is shown `progress`."""
        super().__init__(parts)
        self._progress = progress

    def check(self) -> list[Defect]:
        """Compare the index with its own sums and with the catalogue."""
        store = self._parts
        stale = set(dead_but_alive(store.database.read()))
        found = []
        for one in readable_collections(store):
            lines = store.search.problems([one])
            if lines or one.id in stale:
                why = lines[0] if lines else "its list of dead chunks was damaged"
                found.append(Defect(why, lines, *segment_fallback(one.id), one))
        return found

    def repair(self, defect: Defect) -> str:
        """Make the index of a collection again, after a list of dead chunks that is none."""
        one, shown = defect.collection, self._progress
        assert one is not None
        database = self._parts.database
        if one.id in dead_but_alive(database.read()):
            with database.write() as connection:
                connection.execute("DELETE FROM dead_chunks WHERE collection_id = ?", (one.id,))
        if shown is None:
            self._parts.search.rebuild(one)
            return f"the search segment of '{one.name}' was rebuilt ({defect.why})"
        self._parts.search.rebuild(one, partial(shown, f"index {one.name}"))
        return f"the search index of '{one.name}' was rebuilt ({defect.why})"


def dead_but_alive(connection: sqlite3.Connection) -> list[int]:
    """Return the collections whose list of dead chunks names one that is there."""
    rows = connection.execute(
        """SELECT DISTINCT c.collection_id FROM dead_chunks n JOIN chunks c ON c.id = n.id
           UNION SELECT DISTINCT collection_id FROM dead_chunks
           WHERE collection_id NOT IN (SELECT id FROM collections)"""
    )
    return [int(row[0]) for row in rows]


class ThreadsCheck(Check):
    """The file of conversations' states, which who runs the machine moves away."""

    is_damaged = False

    def check(self) -> list[Defect]:
        """Have SQLite check the file."""
        path, found = self._parts.folder / THREADS, ""
        if path.exists():
            try:
                with closing(connect(path)) as connection:
                    found = next(iter(_integrity(connection)), "")
            except sqlite3.DatabaseError as error:
                found = str(error)
        if not found:
            return []
        self.is_damaged = True
        line = (
            f"the file of conversations is damaged ({found.splitlines()[-1]}); move {path.name}"
            " away: conversations go on from their kept turns"
        )
        return [Defect(found, (line,), "threads", line)]


class OrphanCheck(Check):
    """What lies in the directory and belongs to nothing, by its path below that.

    Segments that are not published, folders of an index that the directory does not have, and files
    that were being written when a process ended.
    """

    def check(self) -> list[Defect]:
        """Look through the folders of the search indexes."""
        folder, search = self._parts.folder, self._parts.search
        rows = self._parts.database.read().execute("SELECT collection_id, name FROM segments")
        published = {f"{row[0]}/{row[1]}" for row in rows}
        # Where other processes build segments, the next build takes away what is left.
        shared = self._parts.database.coordination.is_shared
        found = [
            path
            for name in (() if shared else WORDS)
            for path in (folder / name).glob("*/*")
            if path.is_dir() and f"{path.parent.name}/{path.name}" not in published
        ]
        found += [folder / name for name in ALL_FOLDERS if name not in search.folders]
        found += [path for path in folder.glob("*.part") if path.is_file()]
        names = sorted(one.relative_to(folder).as_posix() for one in found if one.exists())
        advice = "belongs to nothing; run `carrel doctor --repair`"
        return [Defect(name, (f"{name} {advice}",)) for name in names]

    def repair(self, defect: Defect) -> str:
        """Remove it."""
        path = self._parts.folder / defect.why
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        return f"{defect.why} was removed"
