"""The catalogue's connections to PostgreSQL: one writer at a time, as many readers as threads."""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import psycopg
from psycopg import ClientCursor
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool

from core.errors import CallerError, OperatorError
from stores.folder import POSTGRES
from stores.integrity.condition import Defects
from stores.postgres.connection import PostgresConnection, prepare
from stores.postgres.coordination import CONNECT_S, PostgresCoordination, make_table
from stores.postgres.migration import MIGRATION
from stores.postgres.schema import DEPLOYMENT, FORMAT_KEY, statements, tenant_policies
from stores.sqlite.connections import Connection
from stores.sqlite.database import Database, WriteBarrier, rows_lost
from stores.sqlite.schema import FORMAT, other_format

LEAST_VERSION = 150_000  # PostgreSQL 15
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # each try of a server that is away
READERS, WRITERS = 20, 2  # connections of one process; chosen, not measured
CLOCKS_S = 30.0  # by which clocks of machines may differ: expiry of keys, schedules; chosen
_PREAMBLE = re.compile(r"^(connection failed: )?connection to server at .*? failed: ")
READING = "SET default_transaction_read_only = on"
WRITER = "SELECT pg_advisory_xact_lock(hashtext('carrel.writer.' || current_schema()))"


def shown(url: str) -> str:
    """Return where an address leads, without its password."""
    try:
        found = conninfo_to_dict(url)
    except psycopg.Error:  # its text may have the password
        raise CallerError(
            "setting 'catalogue' (CARREL_CATALOGUE) is no address that PostgreSQL's library reads",
            hint="such as postgresql://user@host:5432/name; in a password write @ as %40, / as %2F",
        ) from None
    where = f"{found.get('host') or 'localhost'}:{found.get('port') or 5432}"
    return f"{where}/{found.get('dbname') or ''}"


def check_server(url: str) -> None:
    """Raise OperatorError for a server that does not let in, is too old, or has another clock."""
    where = shown(url)
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_S) as tried:
            version = tried.info.server_version
            [theirs] = tried.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()  # type: ignore[misc]
    except psycopg.Error as error:
        raise OperatorError(
            "the PostgreSQL server of the catalogue does not let this program in",
            value=f"{where} ({_PREAMBLE.sub('', ' '.join(str(error).split()))})",
            hint="start it, or correct the setting `catalogue` (CARREL_CATALOGUE)",
        ) from None
    if version < LEAST_VERSION:
        raise OperatorError(
            f"the catalogue needs PostgreSQL {LEAST_VERSION // 10_000} or newer",
            value=f"{where} has {version // 10_000}",
            hint="upgrade the server, or leave `catalogue` at sqlite",
        )
    check_clock(float(theirs), where)


class PostgresDatabase(Database):
    """Stand in the place of the catalogue's file; `path` says where that would be."""

    def __init__(
        self,
        path: Path,
        url: str,
        *,
        beside: bool = False,
        shared: bool = False,
        migrating: bool = False,
    ) -> None:
        """Connect, and make the tables where there are none; raises OperatorError.

        `beside` is a process that writes only what several may, while another owns the directory;
        `shared` is one of several that use all of it; with `migrating` a catalogue is being copied
        into it.
        """
        self.path = path
        self.url = url
        self.condition = Defects()
        self.write_barrier = WriteBarrier()
        self._write_lock = threading.RLock()
        self._readers_local = threading.local()
        where = shown(url)
        check_server(url)
        self._pool, self._readers_pool = self._connected(WRITERS), self._connected(READERS, READING)
        self._postgres = PostgresConnection(self._pool)
        self._writer = cast(Connection, self._postgres)
        self._coordination = PostgresCoordination(url, where)
        if shared:
            self.coordination = self._coordination
        try:
            self._open(migrating)
            if not beside:
                self._coordination.own(shared=shared, place=place_of(path.parent))
        except BaseException as error:
            self.close()
            if getattr(error, "sqlstate", "") not in ("42501", "25006", "3F000"):
                raise
            raise OperatorError(
                "the role must be allowed to make, read and change tables",
                value=f"{where} ({' '.join(str(error).split())})",
                hint="GRANT CREATE, USAGE ON SCHEMA … TO the role, or use its own schema",
            ) from None

    def _connected(self, most: int, setting: str = "") -> ConnectionPool[psycopg.Connection[Any]]:
        kwargs = {
            "autocommit": True,
            "cursor_factory": ClientCursor,
            "connect_timeout": CONNECT_S,
            "application_name": "carrel",
        }

        def configure(connection: psycopg.Connection[Any]) -> None:
            prepare(connection)
            if setting:
                connection.execute(setting)

        pool: ConnectionPool[psycopg.Connection[Any]] = ConnectionPool(
            self.url,
            kwargs=kwargs,
            min_size=1,
            max_size=most,
            configure=configure,
            timeout=CONNECT_S,
            open=True,
        )
        return pool

    def _open(self, migrating: bool) -> None:
        """Make the tables where there are none; refuse those of others."""
        where = shown(self.url)
        with self._transaction() as connection:
            known = "SELECT to_regclass('meta') IS NOT NULL"
            if not connection.execute(known).fetchone()[0]:
                for statement in statements():
                    self._postgres.execute_as_is(statement)
                if migrating:
                    connection.execute("INSERT INTO meta VALUES (?, '')", (MIGRATION,))
            known = "SELECT to_regclass('shared_values') IS NOT NULL"
            if not connection.execute(known).fetchone()[0]:
                make_table(self._postgres.execute_as_is)
            query = "SELECT key, value FROM meta WHERE key IN (?, ?, ?)"
            rows = connection.execute(query, (FORMAT_KEY, DEPLOYMENT, MIGRATION))
            self._check(dict(rows.fetchall()), where, migrating)
            known = "SELECT relrowsecurity FROM pg_class WHERE oid = to_regclass('documents')"
            if not connection.execute(known).fetchone()[0]:
                for statement in tenant_policies():
                    self._postgres.execute_as_is(statement)
            if not migrating and read_place(self.path.parent) is None:
                self.adopt(connection)

    def _check(self, found: dict[str, str], where: str, migrating: bool) -> None:
        """Refuse tables that are not this program's, of this format, of this directory."""
        if FORMAT_KEY not in found:
            raise OperatorError(
                "the database has a table `meta` of another program",
                value=where,
                hint="give a database or a schema of its own:"
                " postgresql://…?options=-csearch_path%3Dcarrel",
            )
        if int(found[FORMAT_KEY]) != FORMAT:
            raise other_format("database", int(found[FORMAT_KEY]), where)
        if migrating and MIGRATION not in found:
            raise OperatorError(
                "the database has a catalogue already, and is not copied into",
                value=where,
                hint="give an empty database, or drop the schema of that one",
            )
        if not migrating and MIGRATION in found:
            raise OperatorError(
                "a migration into the database has not ended",
                value=where,
                hint="run `carrel migrate` again, which goes on from there",
            )
        if not migrating and found.get(DEPLOYMENT) != read_place(self.path.parent):
            raise OperatorError(
                "the database belongs to another data directory",
                value=where,
                hint="use that directory with --data, or another database for this one",
            )

    def adopt(self, connection: Any) -> None:  # noqa: ANN401 - the writer
        """Note on both sides, within a transaction, that the directory has this database."""
        made = secrets.token_hex(8)
        connection.execute("INSERT INTO meta VALUES (?, ?)", (DEPLOYMENT, made))
        write_place(self.path.parent, self.url, made)

    @property
    def own(self) -> PostgresConnection:
        """Return the connection that a migration writes with."""
        return self._postgres

    def commits(self) -> int:
        """Return 0: the server keeps its own log."""
        return 0

    def check_commits(self) -> None:
        """Do nothing: a server that lost commits says so itself."""

    def check_files(self) -> bool:
        """Tell that no file was taken away: there is none."""
        return True

    def look_at_sums(self, collection_id: int) -> None:
        """Do nothing: the server compares sums with each statement."""

    def forget_sums(self) -> None:
        """Do nothing: no sum is remembered."""

    def read(self) -> Any:  # noqa: ANN401 - a connection that is used as one of SQLite
        """Return this thread's reader."""
        reader = getattr(self._readers_local, "reader", None)
        if reader is None:
            reader = self._readers_local.reader = PostgresConnection(
                self._readers_pool, limited=True
            )
        return reader

    @contextmanager
    def undone(self) -> Iterator[Any]:
        """Run a transaction that is rolled back."""
        with self._write_lock:
            self._postgres.begin("")
            try:
                yield self._writer
            finally:
                self._postgres.rollback()

    def accept_loss(self, version: int) -> None:
        """Go on without rows that are missing."""
        if not self.condition.lost:
            raise rows_lost(self.path, self.condition.lost)
        with self._transaction() as connection:
            connection.execute(
                "UPDATE meta SET value = max(CAST(value AS INTEGER), ?) + 1"
                " WHERE key = 'index_version'",
                (version,),
            )
        self.condition.lost = ""

    @contextmanager
    def _transaction(self, least: int = 0) -> Iterator[Any]:
        """Run one transaction; no other process writes meanwhile, as with SQLite."""
        with self._write_lock:
            self._postgres.begin("")
            try:
                if self._postgres.renewed:
                    self._coordination.check()
                    self._postgres.renewed = False
                self._postgres.execute_as_is(WRITER)
                yield self._writer
            except BaseException:
                with suppress(Exception):
                    self._postgres.rollback()
                raise
            self._postgres.commit()

    def checkpoint(self) -> None:
        """Do nothing: the server empties its own log."""

    def compact(self, wait_s: float) -> None:
        """Have the server write its tables again without what was deleted."""
        with self._write_lock:
            names = self.read().execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
            )
            for (name,) in names:
                self._postgres.execute_as_is(f'VACUUM (FULL) "{name}"')

    def empty_log(self, wait_s: float) -> None:
        """Do nothing: the log is the server's."""

    def forget_threads(self, threads: Sequence[str]) -> None:
        """Delete states of conversations."""
        if not self.read().execute("SELECT to_regclass('checkpoints')").fetchone()[0]:
            return
        with self._transaction() as connection:
            for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
                connection.executemany(
                    f"DELETE FROM {table} WHERE thread_id = ?", [(one,) for one in threads]
                )

    def close(self) -> None:
        """Close every connection; the object is not used afterwards."""
        self._coordination.close()
        self._pool.close()
        self._readers_pool.close()


def check_clock(theirs: float, where: str) -> None:
    """Raise OperatorError where the server's clock, in seconds since 1970, is not this one's."""
    if (apart := abs(time.time() - theirs)) > CLOCKS_S:
        raise OperatorError(
            "the clocks of this machine and of the PostgreSQL server must agree",
            value=f"{where}: they are {apart:.0f} s apart, and {CLOCKS_S:.0f} are allowed",
            hint="set both by NTP: keys, schedules and histories go by them",
        )


def place_of(folder: Path) -> str:
    """Return what tells a data directory from its copies, on whichever machine it is mounted."""
    return str((folder / POSTGRES).stat().st_ino) if (folder / POSTGRES).exists() else ""


def write_place(folder: Path, url: str, deployment: str) -> None:
    """Note which database a directory belongs to, without a password."""
    path = folder / POSTGRES
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump({"database": shown(url), "deployment": deployment}, file)


def read_place(folder: Path) -> str | None:
    """Return the deployment that a directory is of, None for none."""
    try:
        return str(json.loads((folder / POSTGRES).read_text("utf-8"))["deployment"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
