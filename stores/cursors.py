"""Cursors whose errors are those of SQLite, also where a damaged index asks for all memory."""

from __future__ import annotations

import sqlite3
from typing import Any


class Connection(sqlite3.Connection):
    """A connection whose cursors are the ones below."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:  # noqa: ANN401
        """Run a statement in a cursor of its own."""
        return self.cursor(Cursor).execute(sql, parameters)


class Cursor(sqlite3.Cursor):
    """A cursor that never raises MemoryError, which is what a random length in FTS5's blocks gives.

    Rows that are iterated over are not watched, for speed: `fetchall` is for what may be damaged.
    """

    def execute(self, sql: str, parameters: Any = (), /) -> Cursor:  # noqa: ANN401
        """Run a statement."""
        try:
            super().execute(sql, parameters)
        except MemoryError as error:
            raise _too_large(sql) from error
        return self

    def fetchone(self) -> Any:  # noqa: ANN401
        """Return the next row or None."""
        try:
            return super().fetchone()
        except MemoryError as error:
            raise _too_large("the next row") from error

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        try:
            return super().fetchall()
        except MemoryError as error:
            raise _too_large("the next rows") from error


def _too_large(what: str) -> sqlite3.DatabaseError:
    return sqlite3.DatabaseError(f"no memory is large enough for: {' '.join(what.split())}")
