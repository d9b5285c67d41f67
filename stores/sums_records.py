"""Check sums of what people and runs leave: runs, opinions, conversations, jobs, files, links.

A row that is not what was written is withheld where it is read. Aliases in the SQL: r runs, n
feedback, v conversations, t conversation_turns, j jobs, f files, b book_texts, k aliases.
"""

from __future__ import annotations

import sqlite3

from stores.sums import sum_of

RUN = sum_of(
    "r", "run_id tenant user collection question pipeline created_at result trail", "index_version"
)
OPINION = sum_of("n", "run_id tenant user rating comment created_at", "id")
CONVERSATION = sum_of(
    "v", "id tenant user collection title created_at updated_at checkpoint_id waiting"
)
TURN = sum_of("t", "conversation run_id question created_at clarification reply", "id")
JOB = sum_of(
    "j",
    "id kind tenant user collection name roles state error notes created_at updated_at",
    "number bytes attempts documents chunks",
)
FILE = sum_of("f", "relative path fingerprint failures", "collection_id")
LINK = sum_of("b", "rule", "text book collection_id")
ALIAS = sum_of("k", "kind stored alias", "collection_id")

SUMS = {
    "runs": ("r", RUN),
    "feedback": ("n", OPINION),
    "conversations": ("v", CONVERSATION),
    "conversation_turns": ("t", TURN),
    "jobs": ("j", JOB),
    "files": ("f", FILE),
    "book_texts": ("b", LINK),
    "aliases": ("k", ALIAS),
}
# What nobody can say of whom it speaks, once it is damaged.
TRACES = ("runs", "feedback", "conversation_turns", "conversations", "jobs")
# What the next ingest makes anew.
DERIVED = ("files", "book_texts", "aliases")


def sign(connection: sqlite3.Connection, table: str, where: str, *values: object) -> None:
    """Sign the rows of a table that `where` says, after the last change of them."""
    alias, own = SUMS[table]
    connection.execute(f"UPDATE {table} AS {alias} SET sum = {own} WHERE {where}", values)


def find_damaged_records(connection: sqlite3.Connection) -> dict[str, int]:
    """Count the damaged rows by table; tables without any are left out."""
    found = {}
    for table, (alias, own) in SUMS.items():
        query = f"SELECT count(*) FROM {table} AS {alias} WHERE {alias}.sum IS NOT {own}"
        if count := int(connection.execute(query).fetchone()[0]):
            found[table] = count
    return found


def drop_damaged(connection: sqlite3.Connection, *tables: str) -> int:
    """Delete the damaged rows of these tables within a transaction; return how many."""
    dropped = 0
    for table in tables:
        alias, own = SUMS[table]
        query = f"DELETE FROM {table} AS {alias} WHERE {alias}.sum IS NOT {own}"
        dropped += connection.execute(query).rowcount
    return dropped
