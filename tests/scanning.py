"""Look for the bytes of a text in every file of a folder."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path


def encoded(text: str) -> set[bytes]:
    """Return a text as it may lie in a file, in UTF-8, UTF-16 and as JSON escapes it."""
    escaped = text.encode("ascii", "backslashreplace")
    return {text.encode(), text.encode("utf-16-le"), text.encode("utf-16-be"), escaped}


def holding(folder: Path, needles: Iterable[bytes]) -> list[tuple[str, bytes]]:
    """Return (file, needle) for each file that holds a needle, in its content or its name."""
    wanted = list(needles)
    found = []
    for path in sorted(folder.rglob("*")):
        content = str(path.relative_to(folder)).encode()
        if path.is_file():
            content += b"\0" + path.read_bytes()
        found += [(str(path.relative_to(folder)), one) for one in wanted if one in content]
    return found


def rows_with(database: Path, needle: bytes) -> list[str]:
    """Return the tables and rows of a database that hold a needle, to explain a failure."""
    found = []
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        for (name,) in names.fetchall():
            if name.endswith("_terms"):  # a view of another table's words
                continue
            for row in connection.execute(f'SELECT * FROM "{name}"'):
                held = [v if isinstance(v, bytes) else str(v).encode() for v in row]
                if any(needle in one for one in held):
                    found.append(f"{name}: {row!r}"[:300])
    return found or ["no row: bytes that SQLite left in a page"]
