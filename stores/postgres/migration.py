"""Copy a catalogue from SQLite into PostgreSQL, or back: resumable, and verified by sums.

Rows are copied in batches; each is kept together with how far that is, so that what was ended goes
on from there. At the end every row is read back, and counts and sums of each table are compared.
Check sums of rows are made anew, as the two make them differently; damaged rows stay damaged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from core.errors import OperatorError
from stores.integrity.witness import KEY as COMMITS
from stores.postgres.dialect import NUMBERED, TABLES
from stores.postgres.schema import DEPLOYMENT, FORMAT_KEY, WITH_ROWID
from stores.sqlite import fulltext
from stores.sqlite.schema import SCHEMA
from stores.sqlite.sums import SUMS, damaged_rows, row_sum, sign

MIGRATION = "migration"  # of `meta` in a target: how far the copy is
OWN = (COMMITS, DEPLOYMENT, FORMAT_KEY, MIGRATION)  # of `meta`, which each has for itself
BATCH = 1000  # rows of a transaction; chosen, not measured
WORDS = ["rowid", "title", "keywords", "section", "body"]
Progress = Callable[[str, int, int], None]
Connection = Any  # one of SQLite, or of PostgreSQL that is used as one


class Copy:
    """Copy all tables of one catalogue into another, whose triggers are off meanwhile."""

    def __init__(
        self,
        source: Connection,
        target: Connection,
        progress: Progress,
        *,
        without: frozenset[str] = frozenset(),
        words: bool = True,
    ) -> None:
        """Read from `source`, in a transaction; tables named `without`, or the words, stay away."""
        self._source, self._target = source, target
        self._progress = progress
        rows = source.execute("SELECT id FROM collections ORDER BY id").fetchall()
        self._collections = [row[0] for row in rows]
        self._tables = {
            name: (columns, ["rowid"] if name in WITH_ROWID or not key else key)
            for name, (columns, key) in TABLES.items()
            if name not in without
        }
        if words:
            every = {fulltext.table(one): (WORDS, ["rowid"]) for one in self._collections}
            self._tables |= every

    def mark(self) -> dict[str, Any]:
        """Return what tells this state of the source from any other."""
        query = f"""SELECT (SELECT value FROM meta WHERE key = 'index_version'),
            (SELECT max(seq) FROM audit), (SELECT count(*) FROM runs), (SELECT count(*) FROM jobs),
            (SELECT value FROM meta WHERE key = '{COMMITS}')"""
        return {"source": [str(one) for one in self._source.execute(query).fetchone()]}

    def run(self) -> dict[str, int]:
        """Copy what is missing, verify all of it, and return the rows of each table."""
        known = self._state()
        if known and known["source"] != self.mark()["source"]:
            raise OperatorError(
                "the catalogue has changed since its migration was begun",
                value=f"{known['table']} was being copied",
                hint="drop what was copied (its schema, or catalogue.sqlite3.new), then run it"
                " again",
            )
        for one in self._collections:
            if fulltext.table(one) in self._tables:
                fulltext.create_table(self._target, one)
        names = list(self._tables)
        begin = names.index(known["table"]) if known else 0
        for number, name in enumerate(names[begin:], begin):
            after = known["after"] if known and number == begin else None
            self._copy(name, after)
            self._progress("copy", number + 1, len(names))
        counts = self._verify()
        self._sign()
        return counts

    def _state(self) -> dict[str, Any] | None:
        row = self._target.execute("SELECT value FROM meta WHERE key = ?", (MIGRATION,)).fetchone()
        return json.loads(row[0]) if row and row[0] else None

    def _read(
        self, connection: Connection, name: str, after: list[Any] | None = None
    ) -> Iterator[tuple[list[Any], list[Any]]]:
        """Yield batches of rows in the order of their keys, each with the last key."""
        columns, key = self._tables[name]
        shown, by = ", ".join([*columns, *key]), ", ".join(key)
        marks = ", ".join("?" * len(key))
        only = ""
        if name == "meta":
            only = "key NOT IN ({})".format(", ".join(f"'{one}'" for one in OWN))
        while True:
            later = [f"({by}) > ({marks})"] if after is not None else []
            tests = " AND ".join([one for one in (only, *later) if one]) or "TRUE"
            query = f"SELECT {shown} FROM {name} WHERE {tests} ORDER BY {by} LIMIT {BATCH}"
            rows = [tuple(row) for row in connection.execute(query, after or ()).fetchall()]
            if not rows:
                return
            after = list(rows[-1][len(columns) :])
            yield [row[: len(columns)] for row in rows], after

    def _copy(self, name: str, after: list[Any] | None) -> None:
        columns, _ = self._tables[name]
        marks = ", ".join("?" * len(columns))
        insert = f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({marks})"
        if name == "meta":
            insert = f"INSERT OR REPLACE INTO meta VALUES ({marks})"
        for rows, last in self._read(self._source, name, after):
            self._target.execute("BEGIN")
            try:
                self._target.executemany(insert, rows)
                state = json.dumps({**self.mark(), "table": name, "after": last})
                self._target.execute(
                    "INSERT OR REPLACE INTO meta VALUES (?, ?)", (MIGRATION, state)
                )
            except BaseException:
                self._target.execute("ROLLBACK")
                raise
            self._target.execute("COMMIT")

    def _verify(self) -> dict[str, int]:
        """Compare counts and sums of all rows; raises OperatorError for any difference."""
        counts = {}
        for number, name in enumerate(self._tables):
            own, made = (self._sum(one, name) for one in (self._source, self._target))
            if own != made:
                raise OperatorError(
                    "what was copied is not what was there",
                    value=f"{name}: {own[0]} rows and {made[0]}, sums {own[1]:x} and {made[1]:x}",
                    hint="drop the copy, then run it again; the source is as it was",
                )
            counts[name] = own[0]
            self._progress("verify", number + 1, len(self._tables))
        return counts

    def _sum(self, connection: Connection, name: str) -> tuple[int, int]:
        columns, _ = self._tables[name]
        places = [place for place, column in enumerate(columns) if column != "sum"]
        count = total = 0
        for rows, _ in self._read(connection, name):
            count += len(rows)
            total += sum(row_sum(*(_kept(row[place]) for place in places)) for row in rows)
        return count, total

    def _sign(self) -> None:
        """Make the check sums of the target's rows; what is damaged at the source stays so."""
        self._target.execute("BEGIN")
        try:
            for name in SUMS.keys() & self._tables.keys():
                sign(self._target, name, "TRUE")
                _, key = TABLES[name]
                query = f"SELECT {', '.join(key)} FROM {damaged_rows(name)}"
                where = " AND ".join(f"{one} = ?" for one in key)
                for row in self._source.execute(query).fetchall():
                    self._target.execute(f"UPDATE {name} SET sum = NULL WHERE {where}", tuple(row))
        except BaseException:
            self._target.execute("ROLLBACK")
            raise
        self._target.execute("COMMIT")


def _kept(value: Any) -> Any:  # noqa: ANN401 - of a row
    """Return a value as both can keep it: no text of PostgreSQL has a NUL."""
    return value.replace("\x00", "\ufffd") if isinstance(value, str) else value


def switch_triggers(target: Connection, *, on: bool) -> None:
    """Let a target in PostgreSQL take rows as they are, or work as it does."""
    for name in TABLES:
        target.execute_as_is(f"ALTER TABLE {name} {'ENABLE' if on else 'DISABLE'} TRIGGER USER")
    if on:
        for table, column in {**NUMBERED, **dict.fromkeys(WITH_ROWID, "rowid")}.items():
            target.execute_as_is(
                f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'),"
                f" (SELECT greatest(coalesce(max({column}), 0), 1) FROM {table}))"
            )


def drop_triggers(target: Connection) -> None:
    """Take the triggers out of a target in SQLite."""
    rows = target.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    for (name,) in rows:
        target.execute(f"DROP TRIGGER {name}")


def make_triggers(target: Connection) -> None:
    """Give a target in SQLite its triggers, and forget the mark of the copy."""
    for statement in SCHEMA:
        if statement.startswith("CREATE TRIGGER"):
            target.execute(statement)
    target.execute("DELETE FROM meta WHERE key = ?", (MIGRATION,))
