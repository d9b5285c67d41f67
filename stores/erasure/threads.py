"""Delete conversations' states from the file that LangGraph keeps them in, byte for byte."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from stores.compaction import compact

TABLES = ("checkpoints", "writes")
BUSY_S = 30.0


def delete_threads(path: Path, threads: Sequence[str], wait_s: float) -> None:
    """Delete threads and everything freed in the file; it may be open elsewhere."""
    if not threads or not path.exists():
        return
    with closing(sqlite3.connect(path, isolation_level=None, timeout=BUSY_S)) as connection:
        for pragma in ("secure_delete=ON", "trusted_schema=OFF"):
            connection.execute(f"PRAGMA {pragma}")
        known = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
        connection.execute("BEGIN IMMEDIATE")
        for table in known.intersection(TABLES):
            connection.executemany(
                f"DELETE FROM {table} WHERE thread_id = ?", [(thread,) for thread in threads]
            )
        connection.execute("COMMIT")
        compact(connection, path, wait_s)
