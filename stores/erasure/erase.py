"""Delete documents for good, one, those of a source, or all of a tenant.

The truth, the runs and the conversations are changed in one transaction, so nothing finds the
documents any more when a call returns. The derived files and SQLite's own pages follow with `tidy`,
which a note in that transaction asks for: whatever ends the process, the next one finishes it.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.auth import AuthContext
from stores.coordination import ERASED, SharedCoordination
from stores.erasure.documents import COLUMNS, Gone, erase_documents, forget_vectors, rows_of_tables
from stores.erasure.rewriting import note_erasure
from stores.erasure.traces import redact_traces
from stores.runlog.conversations import THREADS
from stores.runlog.history import renewed_counts
from stores.sqlite import fulltext
from stores.sqlite.catalogue import Collection, VisiblePassages
from stores.sqlite.connections import compact, connect
from stores.sqlite.database import Database
from stores.sqlite.permissions import (
    OPERATOR,
    WriteAccess,
    is_shown_as,
    permission_filter,
    shown_id,
)
from stores.sqlite.rows import document_key
from stores.sqlite.writer import Writer, bump, drop_lists

if TYPE_CHECKING:
    from stores.segments.search import SegmentSearch


@dataclass(frozen=True)
class Pending:
    """Say what is left: which rows, of which collections, since when, of how many documents."""

    rows: tuple[int, ...]
    collections: frozenset[int]
    documents: int
    since: str

    @property
    def problem(self) -> str:
        """Return the message to the operator."""
        return (
            f"an erasure is not finished (since {self.since}, {self.documents} documents): deleted"
            " text may still lie in files; run `carrel forget`, which finishes it"
        )


def pending(database: Database) -> Pending | None:
    """Return what is left to be finished, None for nothing."""
    rows = database.read().execute("SELECT * FROM erasures ORDER BY id").fetchall()
    if not rows:
        return None
    return Pending(
        rows=tuple(row["id"] for row in rows),
        collections=frozenset(row["collection_id"] for row in rows),
        documents=sum(row["documents"] for row in rows),
        since=rows[0]["at"],
    )


# By their tenant.
OWN = ("runs", "feedback", "jobs", "spending", "api_keys", "conversations", "notes", "sources")
OF_COLLECTION = (
    *("files", "segments", "dead_chunks", "indexed_vectors", "left_out", "journal"),
    "tree_members",
)


def erase_tenant(connection: sqlite3.Connection, tenant: str) -> tuple[Counter[str], list[int]]:
    """Delete all of a tenant within the caller's transaction.

    Returns what was deleted, by kind, and the row ids of the collections that are gone.
    """
    for kind, table in (("thread", "conversations"), ("upload", "jobs")):
        connection.execute(
            f"INSERT OR IGNORE INTO erasure_leftovers SELECT ?, id FROM {table} WHERE tenant = ?",
            (kind, tenant),
        )
    counts: Counter[str] = Counter()
    rows = connection.execute("SELECT id FROM collections WHERE tenant = ?", (tenant,))
    collections = [row[0] for row in rows]
    for collection_id in collections:
        counts.update(_erase_collection(connection, collection_id))
    for table in OWN:
        counts[table] = connection.execute(
            f"DELETE FROM {table} WHERE tenant = ?", (tenant,)
        ).rowcount
    return counts, collections


def _erase_collection(connection: sqlite3.Connection, collection_id: int) -> Counter[str]:
    rows = connection.execute(
        "SELECT DISTINCT content_hash FROM chunks WHERE collection_id = ?", (collection_id,)
    )
    hashes = {row[0] for row in rows}
    counts: Counter[str] = Counter(collections=1)
    fulltext.drop_table(connection, collection_id)
    for table in ("chunks", "documents"):
        counts[table] = connection.execute(
            f"DELETE FROM {table} WHERE collection_id = ?", (collection_id,)
        ).rowcount
    counts["vectors"] = forget_vectors(connection, hashes)
    for table in OF_COLLECTION:
        gone = connection.execute(f"DELETE FROM {table} WHERE collection_id = ?", (collection_id,))
        counts["files"] += gone.rowcount if table == "files" else 0
    drop_lists(connection, collection_id)
    connection.execute("DELETE FROM collections WHERE id = ?", (collection_id,))
    return counts


TABLES = ("checkpoints", "writes")
BUSY_S = 30.0  # for a lock of the conversations; chosen, not measured


def delete_threads(path: Path, threads: Sequence[str], wait_s: float) -> None:
    """Delete threads and everything freed in the file; it may be open elsewhere."""
    if not threads or not path.exists():
        return
    with closing(connect(path, BUSY_S)) as connection:
        connection.execute("PRAGMA secure_delete=ON")
        known = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
        connection.execute("BEGIN IMMEDIATE")
        for table in known.intersection(TABLES):
            connection.executemany(
                f"DELETE FROM {table} WHERE thread_id = ?", [(thread,) for thread in threads]
            )
        connection.execute("COMMIT")
        compact(connection, path, wait_s)


# Pages that one step of tidying the full-text index may write, so that other writers get their
# turn; the number of the example in SQLite's documentation of FTS5.
MERGED = 500
UPLOADS = "uploads"

Step = Callable[[str], None]


class Erasure:
    """Delete documents and all that was made of them."""

    def __init__(
        self, folder: Path, database: Database, search: SegmentSearch, wait_s: float
    ) -> None:
        """Use an open data directory; `wait_s` is how long readers of a log are waited for."""
        self._folder = folder
        self._database = database
        self._search = search
        self._wait_s = wait_s
        self._tidying = threading.Lock()
        self.on_change: list[Callable[[], object]] = []  # what must forget what it remembers

    def erase(self, auth: AuthContext, collection: Collection, document_id: str) -> bool:
        condition, parameters = permission_filter(auth, collection.id)
        with self._database.write() as connection:
            shown = shown_id(connection, auth, collection.id)
            row = connection.execute(
                f"SELECT {COLUMNS} FROM documents d"
                f" WHERE {condition} AND {is_shown_as(shown, ':id')}",
                {**parameters, "id": document_id},
            ).fetchone()
        if row is None:
            return False
        access = WriteAccess(auth)
        return bool(self.forget(collection, [Gone(**dict(row))], access=access)["documents"])

    def forget(
        self,
        collection: Collection,
        documents: Sequence[Gone],
        *,
        keep_out: bool = False,
        access: WriteAccess = OPERATOR,
    ) -> Counter[str]:
        with self._database.write() as connection:
            left, counts = _take(connection, collection, documents, access)
            if not left:
                return Counter()
            if keep_out:
                connection.executemany(
                    "INSERT OR IGNORE INTO kept_out VALUES (?, datetime('now'))",
                    [
                        (document_key(collection, one.alias) if one.alias else one.key,)
                        for one in left
                    ],
                )
            note_erasure(connection, [collection.id], len(left))
            bump(connection)
        self._changed()
        return counts

    def would_forget(self, collection: Collection, documents: Sequence[Gone]) -> Counter[str]:
        with self._database.undone() as connection:
            return _take(connection, collection, documents, OPERATOR)[1]

    def would_forget_tenant(self, tenant: str) -> Counter[str]:
        with self._database.undone() as connection:
            return erase_tenant(connection, tenant)[0]

    def forget_tenant(self, tenant: str) -> Counter[str]:
        with self._database.write() as connection:
            counts, collections = erase_tenant(connection, tenant)
            if not sum(counts.values()):
                return Counter()
            note_erasure(connection, collections, counts["documents"])
            bump(connection)
        self._changed()
        return counts

    def keeps_out(self, key: str) -> bool:
        query = "SELECT 1 FROM kept_out WHERE key = ?"
        return self._database.read().execute(query, (key,)).fetchone() is not None

    def let_in(self, key: str) -> bool:
        with self._database.write() as connection:
            return connection.execute("DELETE FROM kept_out WHERE key = ?", (key,)).rowcount > 0

    def tenants(self) -> list[str]:
        tables = (*OWN, "collections")
        query = " UNION ".join(f"SELECT tenant FROM {table}" for table in tables)
        return [row[0] for row in self._database.read().execute(f"{query} ORDER BY tenant")]

    def pending_erasure(self) -> Pending | None:
        return pending(self._database)

    def tidy(self, step: Step = lambda stage: None) -> bool:
        with self._tidying, self._database.coordination.lock("tidy"):
            left = self.pending_erasure()
            if left is None:
                return False
            step("conversations")
            self._delete_leftovers()
            writer, reader = Writer(self._database), VisiblePassages(self._database)
            for collection in reader.collections():
                if collection.id in left.collections:
                    writer.drop_collection_if_empty(collection)
            for collection_id in sorted(left.collections):
                self._tidy_words(collection_id, step)
            self._tidy_index(left.collections, step)
            step("catalogue")
            self._changed()
            self._database.compact(self._wait_s)
            with self._database.write() as connection:
                done = [(row,) for row in left.rows]
                connection.executemany("DELETE FROM erasures WHERE id = ?", done)
            self._database.empty_log(self._wait_s)
            return True

    def _changed(self) -> None:
        for forget in self.on_change:
            forget()
        if isinstance(coordination := self._database.coordination, SharedCoordination):
            coordination.bump(ERASED)

    def _delete_leftovers(self) -> None:
        rows = self._database.read().execute("SELECT kind, name FROM erasure_leftovers")
        left = [(row["kind"], row["name"]) for row in rows]
        threads = [name for kind, name in left if kind == "thread"]
        delete_threads(self._folder / THREADS, threads, self._wait_s)
        self._database.forget_threads(threads)
        for kind, name in left:
            if kind == "upload":
                shutil.rmtree(self._folder / UPLOADS / name, ignore_errors=True)
        with self._database.write() as connection:
            connection.executemany(
                "DELETE FROM erasure_leftovers WHERE kind = ? AND name = ?", left
            )

    def _tidy_words(self, collection_id: int, step: Step) -> None:
        """Merge the parts of a full-text index into one, which holds no deleted word."""
        name = fulltext.table(collection_id)
        pages = -MERGED  # the first step marks all parts for merging
        while self._merged(name, pages):
            pages = MERGED
            step("words")

    def _merged(self, name: str, pages: int) -> bool:
        with self._database.write() as connection:
            known = "SELECT 1 FROM sqlite_schema WHERE name = ?"
            if connection.execute(known, (name,)).fetchone() is None:
                return False
            before = connection.total_changes
            connection.execute(f"INSERT INTO {name} ({name}, rank) VALUES ('merge', ?)", (pages,))
            return connection.total_changes - before >= 2  # SQLite's own sign of work left

    def _tidy_index(self, collections: frozenset[int], step: Step) -> None:
        kept = {one.id: one for one in VisiblePassages(self._database).collections()}
        for collection_id in sorted(collections):
            if collection_id in kept:
                self._search.erase(kept[collection_id], lambda done, total: step("segments"))
            else:
                self._search.remove(collection_id)


def _take(
    connection: sqlite3.Connection,
    collection: Collection,
    documents: Sequence[Gone],
    access: WriteAccess,
) -> tuple[list[Gone], Counter[str]]:
    """Delete documents that are still there, within a transaction; return them and the counts."""
    query = "SELECT 1 FROM documents WHERE id = ?"
    left = [one for one in documents if connection.execute(query, (one.row_id,)).fetchone()]
    if not left:
        return left, Counter()
    left += rows_of_tables(connection, collection.id, left)
    with renewed_counts(connection, collection):
        counts = erase_documents(connection, collection.id, left, access)
        counts.update(redact_traces(connection, collection, left, access.auth))
    return left, counts
