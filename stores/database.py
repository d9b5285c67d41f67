"""The catalogue's SQLite connections: one writer, one reader per thread."""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

import stores.migrations_audit  # noqa: F401 - registers a migration
import stores.migrations_erasure  # noqa: F401 - registers a migration
import stores.migrations_journal  # noqa: F401 - registers a migration
import stores.migrations_quality  # noqa: F401 - registers a migration
import stores.migrations_records  # noqa: F401 - registers a migration
import stores.migrations_sums  # noqa: F401 - registers a migration
from core.errors import OperatorError
from stores.compaction import compact, empty_log
from stores.condition import Condition
from stores.cursors import Connection
from stores.gate import Gate
from stores.migrations import apply_migrations
from stores.permissions import MATCHES
from stores.sums import register

BUSY_MS = 5000


class Database:
    """Open the catalogue and hand out connections."""

    def __init__(self, path: Path) -> None:
        """Open or create the file and bring its schema up to date."""
        self.path = path
        self.condition = Condition()
        self.gate = Gate()
        self._local = threading.local()
        self._readers: weakref.WeakSet[_Reader] = weakref.WeakSet()
        self._readers_lock = threading.Lock()
        self._write_lock = threading.RLock()
        try:
            self._writer = self._connect()
        except sqlite3.DatabaseError as error:
            raise damaged(path, error) from None
        try:
            self._writer.execute("PRAGMA journal_mode=WAL")
            self._writer.execute("PRAGMA synchronous=FULL")
            apply_migrations(self._writer)
        except BaseException as error:
            self._writer.close()
            if isinstance(error, sqlite3.DatabaseError):
                raise damaged(path, error) from None
            raise

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_MS / 1000,
            factory=Connection,
        )
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA secure_delete=ON")
        connection.create_function(MATCHES, 2, fnmatchcase, deterministic=True)
        register(connection)
        return connection

    def read(self) -> sqlite3.Connection:
        """Return this thread's read-only connection, which is closed when the thread ends."""
        reader: _Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            connection = self._connect()
            connection.execute("PRAGMA query_only=ON")
            reader = self._local.reader = _Reader(connection)
            with self._readers_lock:
                self._readers.add(reader)
        return reader.connection

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Run one transaction: committed when the block ends, rolled back when it raises.

        Raises OperatorError when the file was found malformed: writing would make it worse.
        """
        self.gate.passed()
        if self.condition.malformed:
            raise malformed(self.path, self.condition.malformed)
        with self._write_lock:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    def checkpoint(self) -> None:
        """Move the log into the file as far as no reader needs it, and empty it when all moved."""
        with self._write_lock:
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def compact(self, wait_s: float) -> None:
        """Write the file anew without what was deleted; raises OperatorError (see `compact`)."""
        with self._write_lock, explained(self.path):
            compact(self._writer, self.path, wait_s)

    def empty_log(self, wait_s: float) -> None:
        """Move the log into the file and cut it to nothing, or raise OperatorError."""
        with self._write_lock:
            empty_log(self._writer, self.path, wait_s)

    def close(self) -> None:
        """Close every connection; the object is not used afterwards."""
        with self._readers_lock:
            readers = list(self._readers)
        for reader in readers:
            reader.connection.close()
        self._writer.close()


class _Reader:
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


def malformed(path: Path, reason: str) -> OperatorError:
    """Explain that the file's structure is damaged."""
    return OperatorError(
        "the catalogue is damaged and is not written any more",
        value=f"{path} ({reason})",
        hint="restore it from a backup, or move it away and ingest again",
    )


def damaged(path: Path, error: sqlite3.Error) -> OperatorError:
    """Explain a SQLite error as what the operator must do."""
    text = str(error)
    if "fts_" in text or getattr(error, "sqlite_errorname", "") == "SQLITE_CORRUPT_VTAB":
        return OperatorError(
            "the full-text index is damaged",
            value=f"{path} ({text})",
            hint="the documents are safe; `carrel reindex` makes the index anew",
        )
    if "full" in text:
        return OperatorError(
            "the disk is full", value=str(path.parent), hint="free some space and run it again"
        )
    if "locked" in text or "busy" in text:
        return OperatorError(
            "the catalogue is busy", value=str(path), hint="try again when the other process ends"
        )
    if "readonly" in text or "unable to open" in text:
        return OperatorError(
            "the data directory must be writable",
            value=str(path.parent),
            hint="correct its permissions, or give another directory with --data",
        )
    return OperatorError(
        "the catalogue is damaged",
        value=f"{path} ({text})",
        hint="restore it from a backup, or move it away and ingest again",
    )
