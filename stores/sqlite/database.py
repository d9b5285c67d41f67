"""The catalogue's SQLite connections: one writer, one reader per thread."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from core.errors import DiskFullError, OperatorError, StorageError, StorageUnavailableError
from core.language.analysis import has_words
from stores.coordination import Coordination
from stores.encryption import VARIABLE
from stores.integrity.condition import ROWS_LOST, Defects
from stores.integrity.witness import KEY, NAME, Witness
from stores.sqlite.connections import Connection, compact, connect, empty_log
from stores.sqlite.permissions import HAS_SUM, KNOWN, SOUND, register_permissions
from stores.sqlite.record_conditions import HAS_WORDS
from stores.sqlite.schema import check_format, make_schema
from stores.sqlite.sums import register


class WriteBarrier:
    """Block writers until a check has run; the first writer that arrives runs it."""

    def __init__(self) -> None:
        """Begin open: no writer waits."""
        self._lock = threading.RLock()
        self._prove: Callable[[], None] | None = None
        self._proving = False

    def close(self, prove: Callable[[], None]) -> None:
        """Block all writers until `prove` has run; what it writes itself is not blocked."""
        self._prove = prove

    def wait(self) -> None:
        """Return when the barrier is open; run the check here when no other thread has."""
        if self._prove is None:
            return
        with self._lock:  # others wait here while one proves
            if self._prove is None or self._proving:
                return
            self._proving = True
            try:
                self._prove()
            finally:
                self._prove, self._proving = None, False


Values = Sequence[Any] | Mapping[str, Any]  # of the parameters of a statement

COUNT = """INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE
    SET value = max(CAST(meta.value AS INTEGER), ?) + 1 RETURNING CAST(meta.value AS INTEGER)"""
MOST_SUMS = 200_000  # that are remembered, some 15 MB; those of more documents are looked at again
PARTS = ("", "-wal", "-shm")
LOST_LOG = "-wal.lost"  # a copy of a log whose end could not be read
LEFT_OUT = (
    "rows listed",
    "a document that would have been listed or counted is damaged in the catalogue and left out;"
    " `carrel doctor` names it",
)


class Database:
    """Open the catalogue and hand out connections."""

    url = "sqlite"  # as the setting `catalogue` says; else the address of a server
    coordination = Coordination()

    def __init__(self, path: Path) -> None:
        """Open or create the file; raises OperatorError for one of another format."""
        check_format(path)
        self.path = path
        self.condition = Defects()
        self.write_barrier = WriteBarrier()
        self._local = threading.local()
        self._readers: weakref.WeakSet[_ThreadConnection] = weakref.WeakSet()
        self._readers_lock = threading.Lock()
        self._write_lock = threading.RLock()
        self._sums: set[int] = set()  # of documents, by row id, that were seen to be right
        self._witness = Witness(path.parent)
        noted = self._witness.read()  # before the rows: another process may add to both
        try:
            self._writer = self._connect()
        except sqlite3.DatabaseError as error:
            raise damaged(path, error) from None
        try:
            make_schema(self._writer)
            self._writer.execute("PRAGMA journal_mode=WAL")
            self._writer.execute("PRAGMA synchronous=FULL")
            self._compare(noted)
            self._files = self._stamps()
            self._main = self._files.get(path.name)
        except BaseException as error:
            self._witness.close()
            self._writer.close()
            if isinstance(error, sqlite3.DatabaseError):
                raise damaged(path, error) from None
            raise

    def _connect(self) -> Connection:
        connection = connect(self.path, shared=True)
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA secure_delete=ON")
        register_permissions(connection)
        connection.create_function(HAS_WORDS, 2, has_words, deterministic=True)
        register(connection)
        connection.create_function(KNOWN, 2, self._known)
        connection.create_function(SOUND, 3, self._sound)
        return connection

    def _known(self, row_id: int, kept: object) -> bool:
        """Tell whether this sum of a document was right when it was looked at."""
        return isinstance(kept, int) and (row_id << 32 | kept) in self._sums

    def _sound(self, row_id: int, kept: object, now: int) -> bool:
        """Tell whether a document has its sum; answers say that one without it was left out."""
        if not isinstance(kept, int) or kept != now:
            self.condition.report(*LEFT_OUT)
            return False
        if len(self._sums) < MOST_SUMS:
            self._sums.add(row_id << 32 | kept)
        return True

    def look_at_sums(self, collection_id: int) -> None:
        """Check the sums of a collection's documents that are not checked yet.

        What does so under a limit of time is not ended by this then.
        """
        seen = "d.collection_id = ? AND d.id NOT IN (SELECT document FROM quarantine)"
        query = f"SELECT count(*) FROM documents d WHERE {seen} AND NOT {HAS_SUM}"
        self.read().execute(query, (collection_id,)).fetchone()

    def forget_sums(self) -> None:
        """Look at every sum again, since a row may have changed under its sum."""
        self._sums.clear()

    def _compare(self, noted: int | None) -> None:
        """Notice that the catalogue has fewer commits than were counted beside it."""
        commits = self.commits()
        if noted is None and commits:
            self.condition.lost = f"perhaps: {NAME}, which counts commits, is gone or damaged"
        elif noted is None:
            self._witness.begin()
        elif noted > commits:
            self.condition.lost = f"{noted - commits} of {noted} commits are gone"
            self._keep_log()
        self._counted = commits

    def _keep_log(self) -> None:
        """Copy a log that may hold what is missing: SQLite drops it with the next write."""
        log, kept = (self.path.with_name(self.path.name + end) for end in ("-wal", LOST_LOG))
        with suppress(OSError):
            if log.stat().st_size and not kept.exists():
                shutil.copyfile(log, kept)
                kept.chmod(0o600)

    def check_commits(self) -> None:
        """Notice that commits went missing while this is open; write a count that was removed."""
        with self._write_lock, suppress(sqlite3.DatabaseError):
            noted = self._witness.read() if self._witness.is_open else None
            commits = self.commits()
            if self.condition.lost or noted is None:
                return
            if noted > commits:
                self.condition.lost = f"{noted - commits} of {noted} commits are gone"
            elif not self._witness.is_there():
                self._witness.close()
                self._witness.begin()
                self._witness.note(commits)

    def commits(self) -> int:
        """Return how many commits the catalogue has counted, 0 before the first."""
        query = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?"
        row = self._writer.execute(query, (KEY,)).fetchone()
        return int(row[0]) if row else 0

    def _stamps(self) -> dict[str, tuple[int, int]]:
        """Return which files the names of this database lead to."""
        found = {}
        for end in PARTS:
            with suppress(OSError):
                stat = os.stat(f"{self.path}{end}")
                found[self.path.name + end] = (stat.st_dev, stat.st_ino)
        return found

    def check_files(self) -> bool:
        """Tell whether this database's names still lead to its open files; else stop writing.

        What is in a log that has lost its name is moved into the file, which the next opening
        finds.
        """
        now = self._stamps()
        gone = [name for name, known in self._files.items() if now.get(name) != known]
        if gone and not self.condition.lost:
            self.condition.lost = f"{gone[0]} was removed or replaced while it was open"
            if self.path.name not in gone:
                with suppress(sqlite3.DatabaseError):
                    self.checkpoint()
        return not gone

    def read(self) -> sqlite3.Connection:
        """Return this thread's read-only connection, which is closed when the thread ends."""
        reader: _ThreadConnection | None = getattr(self._local, "reader", None)
        if reader is None:
            if not self.check_files() and self._stamps().get(self.path.name) != self._main:
                raise rows_lost(self.path, self.condition.lost)  # it would read another file
            connection = self._connect()
            connection.execute("PRAGMA query_only=ON")
            connection.limited = True
            reader = self._local.reader = _ThreadConnection(connection)
            with self._readers_lock:
                self._readers.add(reader)
        return reader.connection

    def check_writable(self) -> None:
        """Raise OperatorError where writing would make things worse: malformed, or rows lost."""
        if self.condition.malformed:
            raise malformed(self.path, self.condition.malformed)
        if self.condition.lost:
            raise rows_lost(self.path, self.condition.lost)

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Run one transaction: committed when the block ends, rolled back when it raises.

        Raises OperatorError as `check_writable` does, and when the files were taken away meanwhile:
        what is written to those is not kept.
        """
        self.write_barrier.wait()
        self.check_writable()
        with self._transaction() as connection:
            yield connection
        if not self.check_files():
            raise rows_lost(self.path, self.condition.lost)

    @contextmanager
    def undone(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction that is rolled back: a check that SQLite takes for a change."""
        if self.condition.malformed:
            raise malformed(self.path, self.condition.malformed)
        with self._write_lock:
            self._writer.execute("PRAGMA shrink_memory")  # the file is checked, not what is kept
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
            finally:
                self._writer.execute("ROLLBACK")

    def accept_loss(self, version: int) -> None:
        """Go on without the rows that are missing.

        The index version grows past `version` and all that was ever given: what was remembered of
        the catalogue that is gone must not be taken for what this one will be. Raises
        OperatorError where this process has open what is not the catalogue any more.
        """
        if not self.check_files():
            raise OperatorError(
                "the catalogue's files were taken away from under this process",
                value=str(self.path),
                hint="stop it; the next one says what is missing",
            )
        with self._write_lock:
            noted = self._witness.read()
            if noted is None:
                self._witness.begin()
            ahead = max(0, (noted or 0) - self.commits())
            with self._transaction(least=noted or 0) as connection:
                connection.execute(
                    "UPDATE meta SET value = max(CAST(value AS INTEGER) + ?, ?) + 1"
                    " WHERE key = 'index_version'",
                    (ahead, version),
                )
            self.condition.lost = ""
            self.path.with_name(self.path.name + LOST_LOG).unlink(missing_ok=True)

    @contextmanager
    def _transaction(self, least: int = 0) -> Iterator[sqlite3.Connection]:
        """Run and count one transaction; its number is higher than `least`."""
        with self._write_lock:
            writer = self._writer
            writer.execute("BEGIN IMMEDIATE")
            try:
                before, count = writer.total_changes, 0
                yield writer
                if self._witness.is_open and writer.total_changes > before:
                    count = writer.execute(COUNT, (KEY, least + 1, least)).fetchone()[0]
                    if count <= self._counted and not least:
                        self.condition.lost = f"{self._counted + 1 - count} commits are gone"
                        raise rows_lost(self.path, self.condition.lost)
                writer.execute("COMMIT")
            except BaseException:
                if writer.in_transaction:
                    writer.execute("ROLLBACK")
                raise
            if count:
                self._counted = int(count)
                self._witness.note(self._counted)

    def checkpoint(self) -> None:
        """Move the log into the file as far as no reader needs it, and empty it when all moved."""
        with self._write_lock:
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def compact(self, wait_s: float) -> None:
        """Write the file again without what was deleted; raises OperatorError (see `compact`)."""
        with self._write_lock, explained(self.path):
            compact(self._writer, self.path, wait_s)

    def empty_log(self, wait_s: float) -> None:
        """Move the log into the file and cut it to nothing, or raise OperatorError."""
        with self._write_lock:
            empty_log(self._writer, self.path, wait_s)

    def forget_threads(self, threads: Sequence[str]) -> None:
        """Do nothing: the states of conversations have a file of their own."""

    def close(self) -> None:
        """Close every connection; the object is not used afterwards."""
        with self._readers_lock:
            readers = list(self._readers)
        for reader in readers:
            reader.connection.close()
        self._writer.close()
        self._witness.close()


class CataloguePart:
    """Read and write some of the tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _all(self, query: str, values: Values = ()) -> list[Any]:
        return self._database.read().execute(query, values).fetchall()

    def _one(self, query: str, values: Values = ()) -> Any:  # noqa: ANN401 - a row, or None
        return self._database.read().execute(query, values).fetchone()

    def _value(self, query: str, values: Values = ()) -> Any:  # noqa: ANN401 - as stored
        row = self._one(query, values)
        return None if row is None else row[0]


class _ThreadConnection:
    """Hold the connection of one thread, whose local storage is all that keeps it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        weakref.finalize(self, connection.close)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the SQLite errors of a block into one that says what the operator must do."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a mistake in this code, not in the file
    except sqlite3.DatabaseError as error:
        raise damaged(path, error) from error


def decoded(data: bytes) -> str:
    """Return a text as SQLite has it; what is damaged in it is replaced."""
    return data.decode("utf-8", "replace")


def malformed(path: Path, reason: str) -> OperatorError:
    """Explain that the file's structure is damaged."""
    return OperatorError(
        "the catalogue is damaged and is not written any more",
        value=f"{path} ({reason})",
        hint="restore it from a backup, or move it away and ingest again",
    )


def rows_lost(path: Path, reason: str) -> OperatorError:
    """Explain that rows which were committed are missing."""
    return OperatorError(
        f"{ROWS_LOST}, so nothing is written",
        value=f"{reason}; {path}",
        hint="run `carrel doctor`; then restore a backup, or go on without them with"
        " `carrel doctor --repair --accept-loss`",
    )


class ServerAwayError(OperatorError):
    """Say that the server of the catalogue does not answer, or has no room, at the moment."""

    retryable = True


def damaged(path: Path, error: StorageError | sqlite3.Error) -> OperatorError:
    """Explain what a store failed with as what the operator must do."""
    text = str(error)
    if (state := getattr(error, "sqlstate", None)) is not None:
        kind = ServerAwayError if isinstance(error, StorageUnavailableError) else OperatorError
        # No answer, a connection that was cut, a server that stops.
        if state[:2] in ("", "08", "57"):
            return kind(
                "the PostgreSQL server of the catalogue does not answer",
                value=" ".join(text.split()),
                hint="nothing that was acknowledged is lost; start it, then try again",
            )
        return kind(
            "PostgreSQL refused what the catalogue asked",
            value=f"{' '.join(text.split())} ({state})",
            hint="nothing of it was kept; the server's log says more",
        )
    if "fts_" in text or getattr(error, "sqlite_errorname", "") == "SQLITE_CORRUPT_VTAB":
        return OperatorError(
            "the full-text index is damaged",
            value=f"{path} ({text})",
            hint="the documents are safe; `carrel reindex` rebuilds the index",
        )
    if "full" in text:
        return DiskFullError(value=str(path.parent))
    if "disk I/O error" in text:  # what a quota and `ulimit -f` look like too
        hint = "nothing that was acknowledged is lost by that; check the disk, then run it again"
        rule = "the disk fails, or has no room left"
        return OperatorError(rule, value=f"{path} ({text})", hint=hint)
    if "locked" in text or "busy" in text:
        hint = "try again when the other process ends"
        return OperatorError("the catalogue is busy", value=str(path), hint=hint)
    if "readonly" in text or "unable to open" in text:
        return OperatorError(
            "the data directory must be writable",
            value=str(path.parent),
            hint="correct its permissions, or give another directory with --data",
        )
    other = "not a database" in text
    keyed = f"if it is encrypted, give its key by {VARIABLE}, else " if other else ""
    return OperatorError(
        "the catalogue is damaged, or encrypted with another key"
        if other
        else "the catalogue is damaged",
        value=f"{path} ({text})",
        hint=f"{keyed}restore it from a backup, or move it away and ingest again",
    )
