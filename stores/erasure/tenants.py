"""Take everything of a tenant out of the truth; the audit log alone keeps what was done."""

from __future__ import annotations

import sqlite3
from collections import Counter

from stores import fulltext
from stores.erasure.documents import forget_vectors

OWN = ("runs", "feedback", "jobs", "spending", "api_keys", "conversations")  # by their tenant
OF_COLLECTION = ("outbox", "files", "segments", "dead_chunks", "left_out", "journal")


def erase_tenant(connection: sqlite3.Connection, tenant: str) -> tuple[Counter[str], list[int]]:
    """Delete all of a tenant within the caller's transaction.

    Returns what was deleted, by kind, and the row ids of the collections that are gone.
    """
    _note_leftovers(connection, tenant)
    counts: Counter[str] = Counter()
    rows = connection.execute("SELECT id FROM collections WHERE tenant = ?", (tenant,))
    collections = [row[0] for row in rows]
    for collection_id in collections:
        counts.update(_erase_collection(connection, collection_id))
    for table in OWN:
        counts[table] = connection.execute(
            f"DELETE FROM {table} WHERE tenant = ?", (tenant,)
        ).rowcount
    return counts, collections


def tenants(connection: sqlite3.Connection) -> list[str]:
    """List the tenants that have anything but rows in the audit log."""
    tables = (*OWN, "collections")
    query = " UNION ".join(f"SELECT tenant FROM {table}" for table in tables)
    return [row[0] for row in connection.execute(f"{query} ORDER BY tenant")]


def _note_leftovers(connection: sqlite3.Connection, tenant: str) -> None:
    for kind, table in (("thread", "conversations"), ("upload", "jobs")):
        connection.execute(
            f"INSERT OR IGNORE INTO erasure_leftovers SELECT ?, id FROM {table} WHERE tenant = ?",
            (kind, tenant),
        )


def _erase_collection(connection: sqlite3.Connection, collection_id: int) -> Counter[str]:
    rows = connection.execute(
        "SELECT DISTINCT content_hash FROM chunks WHERE collection_id = ?", (collection_id,)
    )
    hashes = {row[0] for row in rows}
    counts: Counter[str] = Counter(collections=1)
    fulltext.drop_table(connection, collection_id)
    for table in ("chunks", "documents"):
        counts[table] = connection.execute(
            f"DELETE FROM {table} WHERE collection_id = ?", (collection_id,)
        ).rowcount
    counts["vectors"] = forget_vectors(connection, hashes)
    for table in OF_COLLECTION:
        gone = connection.execute(f"DELETE FROM {table} WHERE collection_id = ?", (collection_id,))
        counts["files"] += gone.rowcount if table == "files" else 0
    connection.execute("DELETE FROM collections WHERE id = ?", (collection_id,))
    return counts
