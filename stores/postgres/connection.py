"""A connection to PostgreSQL that is used as one of SQLite: the same calls, rows and errors.

Each statement is translated (`dialect`). Errors are those of SQLite with a `sqlstate`, so that who
handles the one handles the other. A reader borrows a connection of the pool for each statement, or
for a transaction; a writer has one for its transaction.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from core.auth import current_tenant
from core.budget import current_limit
from core.errors import StorageError, StorageUnavailableError
from stores.postgres.derived import complete_documents, derive
from stores.postgres.dialect import Translated, check_authorized, translate
from stores.postgres.fulltext import special
from stores.postgres.schema import TENANT_SETTING

Psycopg = psycopg.Connection[Any]
BATCH = 200  # statements that are sent at once; chosen, not measured
SIGNED = "UPDATE documents AS d SET sum ="
QUERY_CANCELED = "57014"
NUL, INSTEAD = "\x00", "\ufffd"  # no text of PostgreSQL has a NUL


class PostgresUnavailableError(StorageUnavailableError, sqlite3.OperationalError):
    """Say that the server does not answer, or not now."""


class PostgresIntegrityError(StorageError, sqlite3.IntegrityError):
    """Say that a row contradicts the schema."""


class PostgresFailedError(StorageError, sqlite3.DatabaseError):
    """Say that the server refused a statement."""


class _NumberLoader(Loader):
    """Read what sums and means are as Python's own numbers."""

    def load(self, data: Buffer) -> int | float:
        """Return a whole number as int."""
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)


class _TextLoader(Loader):
    """Read JSON as the text that it is in SQLite."""

    def load(self, data: Buffer) -> str:
        """Return the text."""
        return bytes(data).decode()


def prepare(connection: Psycopg) -> None:
    """Let a new connection of the pool read values as SQLite gives them."""
    connection.adapters.register_loader("numeric", _NumberLoader)
    for name in ("json", "jsonb"):
        connection.adapters.register_loader(name, _TextLoader)


class NamedRow(tuple[Any, ...]):
    """A row with names, as sqlite3.Row."""

    __slots__ = ()
    places: Mapping[str, int] = {}

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401 - as in sqlite3
        return tuple.__getitem__(self, self.places[key] if isinstance(key, str) else key)

    def keys(self) -> list[str]:
        """Return the names of the columns."""
        return list(self.places)


@lru_cache(maxsize=1024)
def _row_class(names: tuple[str, ...]) -> type[NamedRow]:
    places = {name: place for place, name in enumerate(names)}
    return type("NamedRow", (NamedRow,), {"__slots__": (), "places": places})


class PostgresCursor:
    """Hold what a statement found; it is all read when the statement returns."""

    def __init__(self, connection: PostgresConnection) -> None:
        self.connection = connection
        self.row_factory: object = NamedRow
        self.lastrowid: int | None = None
        self.rowcount = -1
        self._rows: Iterator[Any] = iter(())

    def execute(self, sql: str, parameters: Any = (), /) -> PostgresCursor:  # noqa: ANN401
        """Run a statement."""
        self.connection.run(self, sql, parameters)
        return self

    def executemany(self, sql: str, values: Iterable[Any], /) -> PostgresCursor:
        """Run a statement for each of these values."""
        self.connection.run_many(self, sql, values)
        return self

    def keep(self, rows: Sequence[Any], count: int) -> None:
        """Take over what a statement gave."""
        self._rows, self.rowcount = iter(rows), count

    def fetchone(self) -> Any:  # noqa: ANN401
        """Return the next row or None."""
        return next(self._rows, None)

    def fetchmany(self, size: int = 1) -> list[Any]:
        """Return the next `size` rows, fewer at the end."""
        return [row for _, row in zip(range(size), self._rows, strict=False)]

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        return list(self._rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows

    def close(self) -> None:
        """Forget the rows."""
        self._rows = iter(())


class PostgresConnection:
    """Stand in the place of a connection to SQLite; `limited` ends with the caller's time."""

    def __init__(self, pool: ConnectionPool[Psycopg], *, limited: bool = False) -> None:
        self._pool = pool
        self._pinned: Psycopg | None = None
        self.limited = limited
        self.total_changes = 0
        self.renewed = False  # whether the server was started anew
        self.text_factory: object = str
        self._rule: Callable[..., int] | None = None
        self.remembered: dict[Any, Any] = {}  # of `derived`

    @property
    def in_transaction(self) -> bool:
        """Tell whether a transaction is open."""
        return self._pinned is not None

    def cursor(self) -> PostgresCursor:
        """Return a new cursor."""
        return PostgresCursor(self)

    def execute(self, sql: str, parameters: Any = (), /) -> PostgresCursor:  # noqa: ANN401
        """Run a statement in a cursor of its own."""
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, values: Iterable[Any], /) -> PostgresCursor:
        """Run a statement for each of these values, in a cursor of its own."""
        return self.cursor().executemany(sql, values)

    def execute_as_is(self, sql: str) -> None:
        """Run a statement that is PostgreSQL's own."""
        with self._borrowed() as connection:
            connection.execute(sql)

    def set_authorizer(self, rule: Callable[..., int] | None) -> None:
        """Ask a rule of every table and function that a statement names, as SQLite does."""
        self._rule = rule

    def begin(self, mode: str) -> None:
        """Borrow a connection until `commit` or `rollback`, in a transaction."""
        assert self._pinned is None, "a transaction is open already"
        try:
            self._pinned = self._begun(mode)
        except PostgresUnavailableError:  # the server was started anew, perhaps
            self._pool.check()
            self._pinned, self.renewed = self._begun(mode), True

    def _begun(self, mode: str) -> Psycopg:
        with explained():
            pinned = self._pool.getconn()
            try:
                pinned.execute(f"BEGIN {mode}")
            except BaseException:
                self._pool.putconn(pinned)
                raise
        return pinned

    def commit(self) -> None:
        """End the transaction and give its connection back."""
        self._end("COMMIT")

    def rollback(self) -> None:
        """Undo the transaction and give its connection back."""
        self._end("ROLLBACK")

    def _end(self, how: str) -> None:
        pinned, self._pinned = self._pinned, None
        if pinned is None:
            return
        try:
            with explained():
                failed = pinned.info.transaction_status is TransactionStatus.INERROR
                if not pinned.closed:
                    pinned.execute("ROLLBACK" if failed else how)
                if failed and how == "COMMIT":
                    raise PostgresFailedError("the transaction had failed and was undone")
        finally:
            self._pool.putconn(pinned)

    def close(self) -> None:
        """Give back what is borrowed."""
        self.rollback()

    def run(self, cursor: PostgresCursor, sql: str, parameters: Any) -> None:  # noqa: ANN401
        """Run a statement and give the cursor what it found."""
        if self._rule is not None:
            check_authorized(sql, self._rule)
        word = sql.split(None, 1)[0].upper()
        if word == "BEGIN":
            self.begin("ISOLATION LEVEL REPEATABLE READ READ ONLY" if self.limited else "")
            return
        if word in ("COMMIT", "ROLLBACK"):
            self._end(word)
            return
        done = special(sql, self, parameters)
        if isinstance(done, list):
            cursor.keep(done, len(done))
            return
        if sql.startswith(SIGNED):
            complete_documents(self, sql.rpartition(" WHERE ")[2], parameters)
        made = translate(done or sql)
        with self._unasked():
            given = self._given(made, parameters)
        try:
            self._send(cursor, made, given)
        except PostgresUnavailableError:
            if not self.limited or self._pinned is not None:
                raise
            self._pool.check()  # the server was started anew, perhaps: reading again does no harm
            self._send(cursor, made, given)

    @contextmanager
    def _unasked(self) -> Iterator[None]:
        """Let statements of this adapter read what they need, without the rule."""
        rule, self._rule = self._rule, None
        try:
            yield
        finally:
            self._rule = rule

    def _send(self, cursor: PostgresCursor, made: Translated, given: dict[str, Any] | None) -> None:
        with self._borrowed() as connection:
            found = connection.cursor()
            found.execute(self._settings(escaped=given is not None) + made.sql, given)
            while found.nextset():
                pass
            rows = found.fetchall() if found.description else []
            if made.changes:
                self.total_changes += max(0, found.rowcount)
            if made.returns_id:
                cursor.lastrowid = rows[0][0] if rows else None
                cursor.keep([], found.rowcount)
                return
            if cursor.row_factory is not None and found.description:
                named = _row_class(tuple(one.name for one in found.description))
                rows = [named(row) for row in rows]
            cursor.keep(rows, found.rowcount)

    def run_many(self, cursor: PostgresCursor, sql: str, values: Iterable[Any]) -> None:
        """Run a statement for each of these values, many at once."""
        made = translate(sql)
        each = [made_of(one, made.sql) for one in values]
        changed = 0
        for start in range(0, len(each), BATCH):
            with self._borrowed() as connection:
                found = connection.cursor()
                some = [found.mogrify(made.sql, one) for one in each[start : start + BATCH]]  # type: ignore[attr-defined]
                found.execute("; ".join(some))
                more: bool | None = True
                while more:
                    changed += max(0, found.rowcount)
                    more = found.nextset()
        self.total_changes += changed
        cursor.keep([], changed)

    def _given(self, made: Translated, parameters: Any) -> dict[str, Any] | None:  # noqa: ANN401
        given = made_of(parameters, made.sql)
        for name, one in made.derived.items():
            given[name] = derive(self, one, given)
        return given or ({} if "%" in made.sql else None)

    def _settings(self, *, escaped: bool) -> str:
        """Return what has the server end with the caller's time, and show no other tenant."""
        if not self.limited:
            return ""
        limit = current_limit()
        if limit.is_up():
            raise limit.error()
        left = limit.until - time.monotonic() if limit.until < math.inf else 0
        tenant = current_tenant().replace("'", "''").replace("%", "%%" if escaped else "%")
        time_ms = max(1, math.ceil(left * 1000)) if left else 0
        return f"SET statement_timeout = {time_ms}; SET {TENANT_SETTING} = '{tenant}'; "

    @contextmanager
    def _borrowed(self) -> Iterator[Psycopg]:
        with explained():
            if self._pinned is not None:
                yield self._pinned
                return
            with self._pool.connection() as connection:
                yield connection


def made_of(parameters: Any, sql: str) -> dict[str, Any]:  # noqa: ANN401
    """Return parameters by name, those without one by their places from 1, as the server takes."""
    named = isinstance(parameters, Mapping)
    pairs = parameters.items() if named else ((str(n), v) for n, v in enumerate(parameters, 1))
    return {name: _value(value) for name, value in pairs}


def _value(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and math.isnan(value):
        return None  # as SQLite has it
    return value.replace(NUL, INSTEAD) if isinstance(value, str) and NUL in value else value


@contextmanager
def explained() -> Iterator[None]:
    """Turn the errors of the server into those of SQLite, with their `sqlstate`."""
    try:
        yield
    except psycopg.Error as error:
        state = error.sqlstate or ""
        if state == QUERY_CANCELED and current_limit().is_up():
            raise current_limit().error() from None
        kind: type[StorageError] = PostgresFailedError
        if isinstance(error, psycopg.IntegrityError):
            kind = PostgresIntegrityError
        elif isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | PoolTimeout):
            kind = PostgresUnavailableError
        failure = kind(str(error).strip())
        failure.sqlstate = state  # type: ignore[attr-defined]
        raise failure from error
