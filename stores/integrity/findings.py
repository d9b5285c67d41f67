"""Look for damage in the catalogue: its structure, its rows, and the full-text index in it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import OperatorError
from stores.segments.truth import snapshot
from stores.sqlite.connections import Connection
from stores.sqlite.database import Database
from stores.sqlite.fulltext import table
from stores.sqlite.sums import Damage

TREE = re.compile(r"(?:On tree page|Tree) (\d+)")
INDEX_SIGNS = ("missing from index", "entries in index", "non-unique entry in index")
RECORDS = {
    "runs": "records of runs are damaged and withheld; restore a backup",
    "feedback": "opinions are damaged and withheld; restore a backup",
    "conversations": "conversations are damaged and withheld; restore a backup",
    "conversation_turns": "turns of conversations are damaged and withheld; restore a backup",
    "jobs": "jobs are damaged and not taken up; restore a backup, or send the uploads again",
    "files": "entries of ingested files are damaged: the next ingest reads these files again; run"
    " `carrel doctor --repair`",
    "book_texts": "links of books are damaged and not followed; run `carrel doctor --repair`, then"
    " ingest again",
    "aliases": "names that several documents have are damaged: their documents are shown by longer"
    " ids; run `carrel doctor --repair`",
}
BUSY_S = 5.0
LINES = 20  # of SQLite's own check that are read


@dataclass(frozen=True)
class FulltextFindings:
    """Say how the full text of a collection differs from its chunks; `error` when unreadable."""

    rows: int = 0
    missing: list[int] = field(default_factory=list)
    orphans: list[int] = field(default_factory=list)
    error: str = ""

    def problem(self) -> str:
        """Return in words what is wrong, "" for nothing."""
        if self.error:
            return self.error
        if self.missing or self.orphans:
            return f"{len(self.missing)} chunks are missing, {len(self.orphans)} rows have no chunk"
        return ""


def structure_problems(connection: sqlite3.Connection) -> list[str]:
    """Return what `PRAGMA integrity_check` and the checks of Carrel's own tables find.

    Pages are read from the file: those that SQLite remembers may be better than what is there.
    """
    try:
        connection.execute("PRAGMA shrink_memory")
        rows = connection.execute(f"PRAGMA integrity_check({LINES})").fetchall()
        found = [str(row[0]) for row in rows if row[0] != "ok"]
        if not found:
            found += _own_problems(connection)
    except sqlite3.DatabaseError as error:
        found = [str(error)]
    return found


def threads_problem(path: Path) -> str:
    """Return in words what is wrong with the file of conversations' states, "" for nothing."""
    if not path.exists():
        return ""
    try:
        with closing(
            sqlite3.connect(path, isolation_level=None, timeout=BUSY_S, factory=Connection)
        ) as connection:
            rows = connection.execute(f"PRAGMA integrity_check({LINES})").fetchall()
        found = next((str(row[0]) for row in rows if row[0] != "ok"), "")
    except sqlite3.DatabaseError as error:
        found = str(error)
    if not found:
        return ""
    return (
        f"the file of conversations is damaged ({found.splitlines()[-1]}); move {path.name} away:"
        " conversations go on from their kept turns"
    )


def damaged_parts(connection: sqlite3.Connection, problems: list[str]) -> set[str] | None:
    """Return the derived parts that all problems are of: "indexes", "fulltext"; None for others.

    SQLite names the index, or the root page of the tree, that a problem is of.
    """
    try:
        rows = connection.execute("SELECT rootpage, type, name FROM sqlite_schema").fetchall()
    except sqlite3.DatabaseError:
        return None
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


def _own_problems(connection: sqlite3.Connection) -> list[str]:
    found = []
    rows = connection.execute("PRAGMA foreign_key_check").fetchall()
    if rows:
        found.append(f"{len(rows)} rows of {rows[0][0]} belong to a row that is gone")
    names = {"index_version", "last_collections", "last_documents", "last_chunks"}
    values = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    bad = [name for name in sorted(names) if not str(values.get(name, "")).isdigit()]
    if bad:
        found.append(f"the counter {bad[0]} is no number")
    return found


def dead_but_alive(connection: sqlite3.Connection) -> list[int]:
    """Return the collections whose list of dead chunks names one that is there."""
    rows = connection.execute(
        """SELECT DISTINCT c.collection_id FROM dead_chunks n JOIN chunks c ON c.id = n.id
           UNION SELECT DISTINCT collection_id FROM dead_chunks
           WHERE collection_id NOT IN (SELECT id FROM collections)"""
    )
    return [int(row[0]) for row in rows]


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
    return FulltextFindings(len(rows), sorted(chunks - rows), sorted(rows - chunks))


def damage_problems(damage: Damage, *, named: bool) -> list[str]:
    """Return what is wrong with the rows of the truth, each with what to do.

    Only who runs the machine may read names: they are those of every tenant.
    """

    def some(names: Iterable[str]) -> str:
        return f" ({_some(names)})" if named else ""

    found = []
    if damage.documents:
        found.append(
            f"{len(damage.documents)} documents are damaged in the catalogue and withheld"
            f"{some(damage.documents.values())}; restore a backup, or ingest their files again"
        )
    if damage.chunks:
        found.append(
            f"{len(damage.chunks)} passages are damaged in the catalogue and withheld"
            f"{some(damage.chunks)}; restore a backup, or ingest their files again"
        )
    if damage.vectors:
        found.append(
            f"{len(damage.vectors)} stored vectors are damaged: their passages are found by words"
            " alone; run `carrel doctor --repair`"
        )
    if damage.collections:
        found.append(
            f"the profile of a collection is damaged in the catalogue{some(damage.collections)};"
            " restore a backup, or ingest again with --profile"
        )
    if damage.keys:
        found.append(f"keys are damaged and not accepted{some(damage.keys)}; make new ones")
    for name, count in damage.records.items():
        found.append(f"{count} {RECORDS[name]}")
    return found


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
    return ", ".join(listed[:3]) + more
