"""Connections that end with the caller's time, and files rewritten without what was deleted.

Errors are those of SQLite, also where damage asks for all memory, or is no text any more; each is a
StorageError as well. Files that others wrote are read without trusting what they hold.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from core.budget import current_limit
from core.errors import OperatorError, StorageError, StorageUnavailableError
from stores.encryption import key_statements

# Between two looks at the clock: a look takes the interpreter's lock, which other threads want.
# Of what is asked here, so many take 1 to 20 ms.
STEPS = 20_000
# What the errors of SQLite are to those who do not know it, here they stay what they are. One of
# this program's own, a ProgrammingError, is none of them.
_FAILURES = {
    kind: type(f"Storage{kind.__name__}", (base, kind), {})
    for kind, base in (
        (sqlite3.OperationalError, StorageUnavailableError),
        (sqlite3.IntegrityError, StorageError),
        (sqlite3.DatabaseError, StorageError),
    )
}


BUSY_S = 5.0  # chosen, not measured: SQLite's usual patience with another process's write


def connect(
    path: Path | str, wait_s: float = BUSY_S, *, shared: bool = False, foreign: bool = False
) -> Connection:
    """Open a file, by one thread unless `shared`; a lock of it is waited for.

    One without a name, "", is in memory until it grows. One that is not `foreign` is encrypted
    where the process has a key; `foreign` ones may be named by an address. What a file that
    somebody may have written has in its schema calls no function of ours.
    """
    connection = sqlite3.connect(
        path,
        wait_s,
        isolation_level=None,
        check_same_thread=not shared,
        factory=Connection,
        uri=foreign,
    )
    for statement in () if foreign else key_statements():
        connection.execute(statement)
    connection.execute("PRAGMA trusted_schema=OFF")
    return connection


class Connection(sqlite3.Connection):
    """A connection whose cursors are the ones below; a `limited` one ends with the caller's time.

    A writer is not limited: what was begun to be written is written.
    """

    limited = False
    _watched = False

    def cursor(self, factory: Any = None) -> Any:  # noqa: ANN401 - as in sqlite3
        """Return a new cursor."""
        return super().cursor(factory or Cursor)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:  # noqa: ANN401
        """Run a statement in a cursor of its own."""
        cursor: Cursor = self.cursor()
        return cursor.execute(sql, parameters)

    def executemany(self, sql: str, values: Iterable[Any], /) -> sqlite3.Cursor:
        """Run a statement for each of these values, in a cursor of its own."""
        cursor: Cursor = self.cursor()
        return cursor.executemany(sql, values)

    def look_at_time(self) -> None:
        """Have SQLite look at the clock where there is a limit; raises TimeUpError after it."""
        if not self.limited:
            return
        limit = current_limit()
        if limit.is_up():
            raise limit.error()
        watched = limit.until < math.inf
        if watched is not self._watched:
            self.set_progress_handler((lambda: current_limit().is_up()) if watched else None, STEPS)
            self._watched = watched


class Cursor(sqlite3.Cursor):
    """A cursor that raises TimeUpError at the end of the caller's time, else errors of SQLite.

    A random length in FTS5's blocks is a MemoryError, and a flipped bit of the schema, which SQLite
    quotes, a UnicodeDecodeError.
    """

    def execute(self, sql: str, parameters: Any = (), /) -> Cursor:  # noqa: ANN401
        """Run a statement."""
        if isinstance(self.connection, Connection):
            self.connection.look_at_time()
        with _explained(sql):
            super().execute(sql, parameters)
        return self

    def executemany(self, sql: str, values: Iterable[Any], /) -> Cursor:
        """Run a statement for each of these values."""
        with _explained(sql):
            super().executemany(sql, values)
        return self

    def fetchone(self) -> Any:  # noqa: ANN401
        """Return the next row or None."""
        with _explained("the next row"):
            return super().fetchone()

    def fetchmany(self, size: int | None = 1) -> list[Any]:
        """Return the next `size` rows, fewer at the end."""
        with _explained("the next rows"):
            return super().fetchmany(size)

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        with _explained("the next rows"):
            return super().fetchall()

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override] # sqlite3 returns itself
        """Yield the rows that are left."""
        with _explained("the next rows"):
            yield from iter(super().fetchone, None)


@contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        yield
    except MemoryError as error:
        raise _failure(f"no memory is large enough for: {' '.join(what.split())}") from error
    except UnicodeDecodeError as error:
        said = f"what is damaged is no text any more ({error}): {' '.join(what.split())}"
        raise _failure(said) from error
    except (StorageError, sqlite3.ProgrammingError):  # of values that another cursor gives
        raise
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
            raise current_limit().error() from None
        raise _failure(str(error), error) from error


def _failure(text: str, error: sqlite3.DatabaseError | None = None) -> Exception:
    """Return a failure in words of SQLite, with its codes, as a StorageError."""
    kind = sqlite3.DatabaseError if error is None else type(error)
    failure: Exception = _FAILURES.get(kind, _FAILURES[sqlite3.DatabaseError])(text)
    vars(failure).update(vars(error) if error else {})
    return failure


POLL_S = 0.02  # between two tries to empty a log; chosen, not measured


def compact(connection: sqlite3.Connection, path: Path, wait_s: float) -> None:
    """Rewrite the file and move its log into it, waiting up to `wait_s` for readers.

    A page that was split keeps copies of rows that moved away, and `secure_delete` does not know of
    them: only writing all pages again leaves nothing. Takes up to twice the file's size on disk.
    Raises OperatorError when a reader holds the log for longer.
    """
    connection.execute("VACUUM")
    empty_log(connection, path, wait_s)


def empty_log(connection: sqlite3.Connection, path: Path, wait_s: float) -> None:
    """Move the log into the file and cut it to nothing; raises OperatorError when it stays."""
    until = time.monotonic() + wait_s
    while True:
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:
            return
        if time.monotonic() >= until:
            raise OperatorError(
                "a reader holds the log of the database, where deleted text may still lie",
                value=str(path),
                hint="it is tried again with the next deletion, start, or `carrel forget`",
            )
        time.sleep(POLL_S)


def list_foreign_tables(path: Path) -> set[str]:
    """Return the names of the tables of a file; its views, which run what they say, are none.

    Raises StorageError for a file that is damaged or no database.
    """
    found = _read(path, "SELECT name FROM sqlite_master WHERE type = 'table'")
    return {str(row[0]) for row in found}


def read_foreign_rows(path: Path, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table; bytes that are no UTF-8 become U+FFFD.

    Raises StorageError, perhaps after some rows, where the file is damaged or lacks a column.
    """
    shown = ", ".join(_quoted(column) for column in columns)
    yield from _read(path, f"SELECT {shown} FROM main.{_quoted(table)}")


def _quoted(name: str) -> str:
    """Return a name in brackets, which unlike quotes never make a text of one that is absent."""
    return f"[{name.replace(']', '')}]"


def _read(path: Path, statement: str) -> Iterator[tuple[Any, ...]]:
    # Immutable: no journal beside the file is looked for, and nothing is ever written.
    with closing(connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", foreign=True)) as opened:
        opened.text_factory = lambda raw: raw.decode("utf-8", "replace")
        opened.execute("PRAGMA query_only=ON")
        opened.execute("PRAGMA cell_size_check=ON")
        cursor: sqlite3.Cursor = opened.execute(statement)
        yield from cursor
