"""Which words the open documents of a collection say, asked of its full-text index."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import cache

from core.auth import AuthContext
from stores import fulltext
from stores.erasure.redaction import Elsewhere, nowhere
from stores.permissions import permission_filter


def said_in(
    connection: sqlite3.Connection, collection_id: int | None, auth: AuthContext
) -> Elsewhere:
    """Return what tells whether an open document of a collection says analysed terms in a row.

    Only documents count that are open to the whole tenant and that `auth` may see: what stays in a
    redacted text, which several users may read, must say nothing of a text that is hidden from one.
    Where the index cannot be read no word is known, so that more is hidden than must be.
    """
    if collection_id is None:
        return nowhere
    name = fulltext.table(collection_id)
    condition, parameters = permission_filter(auth, collection_id)
    query = f"""SELECT 1 FROM {name} JOIN chunks c ON c.id = {name}.rowid
        JOIN documents d ON d.id = c.document
        WHERE {name} MATCH :row AND d.is_open = 1 AND {condition} LIMIT 1"""

    @cache  # many runs have the same words, and a word of many hidden passages takes long
    def is_said(row: str) -> bool:
        try:
            found = connection.execute(query, {**parameters, "row": row}).fetchone()
        except sqlite3.DatabaseError:
            return False
        return found is not None

    def said(terms: Sequence[str]) -> bool:
        row = fulltext.match_expression([[" ".join(terms)]])
        return bool(row) and is_said(row)

    return said
