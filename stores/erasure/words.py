"""Which words other documents of a collection say, asked of its full-text index."""

from __future__ import annotations

import sqlite3

from stores import fulltext
from stores.erasure.redaction import Elsewhere, nowhere


def said_in(connection: sqlite3.Connection, collection_id: int | None) -> Elsewhere:
    """Return what tells whether any document of a collection says an analysed term.

    Where the index cannot be read no word is known, so that more is hidden than must be.
    """
    if collection_id is None:
        return nowhere
    query = f"SELECT 1 FROM {fulltext.table(collection_id)}_terms WHERE term = ?"

    def said(term: str) -> bool:
        try:
            return connection.execute(query, (term,)).fetchone() is not None
        except sqlite3.DatabaseError:
            return False

    return said
