"""Write a SQLite file again without what was deleted, and empty its log."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from core.errors import OperatorError

POLL_S = 0.02


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
