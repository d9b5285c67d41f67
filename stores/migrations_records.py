"""The migration that gives what people and runs leave their check sums."""

from __future__ import annotations

import sqlite3

from stores import sums
from stores.migrations import migration
from stores.sums_records import sign

# Those that there were then; later tables are made with theirs.
TABLES = (
    *("runs", "feedback", "conversations", "conversation_turns", "jobs", "files", "book_texts"),
)


@migration
def m016_record_sums(connection: sqlite3.Connection) -> None:
    """Give runs, opinions, conversations, jobs, files and book links their sums."""
    for table in TABLES:
        connection.execute(f"ALTER TABLE {table} ADD COLUMN sum INTEGER")
    sums.register(connection)
    for table in TABLES:
        sign(connection, table, "1")
