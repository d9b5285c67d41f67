"""SQLite files that others wrote, read without trusting what they hold."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from stores.sqlite.connections import connect


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
    with closing(connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as opened:
        opened.text_factory = lambda raw: raw.decode("utf-8", "replace")
        opened.execute("PRAGMA query_only=ON")
        opened.execute("PRAGMA cell_size_check=ON")
        cursor: sqlite3.Cursor = opened.execute(statement)
        yield from cursor
