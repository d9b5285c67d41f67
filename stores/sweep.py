"""Drop vectors of texts that no chunk has: of documents that went, or that never arrived."""

from __future__ import annotations

from core.faults import fault
from stores.database import Database


def sweep(database: Database) -> int:
    """Drop them where there may be some, in one transaction; return how many texts that were.

    Not while an ingest is between the vectors of a batch and its documents.
    """
    noted = database.read().execute("SELECT value FROM meta WHERE key = 'unswept'").fetchone()
    if noted is None or noted[0] == "0":
        return 0
    dropped = 0
    with database.write() as connection:
        for table in ("embeddings", "sentence_vectors"):
            cursor = connection.execute(
                f"""DELETE FROM {table} WHERE NOT EXISTS
                    (SELECT 1 FROM chunks c WHERE c.content_hash = {table}.content_hash)"""
            )
            dropped = max(dropped, cursor.rowcount)
        connection.execute("UPDATE meta SET value = '0' WHERE key = 'unswept'")
        fault("sweep.before")
    fault("sweep.after")
    return dropped
