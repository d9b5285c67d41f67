"""The migration that gives what people and runs leave their check sums."""

from __future__ import annotations

import sqlite3

from stores import sums, sums_records
from stores.migrations import migration


@migration
def m016_record_sums(connection: sqlite3.Connection) -> None:
    """Give runs, opinions, conversations, jobs, files and book links their sums."""
    for table in sums_records.SUMS:
        connection.execute(f"ALTER TABLE {table} ADD COLUMN sum INTEGER")
    sums.register(connection)
    sums_records.sign_records(connection)
