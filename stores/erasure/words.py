"""Which words other documents of a collection say, asked of its full-text index."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from stores import fulltext
from stores.erasure.redaction import Elsewhere, nowhere


def said_in(connection: sqlite3.Connection, collection_id: int | None) -> Elsewhere:
    """Return what tells whether any document of a collection says analysed terms in a row.

    Where the index cannot be read no word is known, so that more is hidden than must be.
    """
    if collection_id is None:
        return nowhere
    name = fulltext.table(collection_id)
    query = f"SELECT 1 FROM {name} WHERE {name} MATCH ? LIMIT 1"

    def said(terms: Sequence[str]) -> bool:
        row = fulltext.match_expression([[" ".join(terms)]])
        try:
            return bool(row) and connection.execute(query, (row,)).fetchone() is not None
        except sqlite3.DatabaseError:
            return False

    return said
