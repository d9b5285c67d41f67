"""Follow the links between books and their full texts, always under a caller's permissions."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Any

from core.auth import AuthContext
from stores.aliases import shown_id
from stores.permissions import permission_filter
from stores.sums_records import LINK


def books_of_texts(
    connection: sqlite3.Connection, auth: AuthContext, collection_id: int, keys: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """Return the book of each text that has one, by the text's document key.

    A book is its record's `key`, `document_id`, `title`, `source`, `authors` and `year`; one that
    the caller may not see is left out.
    """
    condition, parameters = permission_filter(auth, collection_id)
    shown = shown_id(connection, auth, collection_id)
    rows = connection.execute(
        f"""SELECT t.key AS text, d.key, {shown} AS document_id, d.title, d.source, d.metadata
            FROM json_each(:keys) wanted CROSS JOIN documents t ON t.key = wanted.value
            CROSS JOIN book_texts b ON b.text = t.id CROSS JOIN documents d ON d.id = b.book
            WHERE {condition} AND b.sum IS {LINK}""",
        {**parameters, "keys": json.dumps(list(dict.fromkeys(keys)))},
    )
    return {row["text"]: _book(row) for row in rows}


def texts_of_book(
    connection: sqlite3.Connection, auth: AuthContext, collection_id: int, key: str
) -> list[dict[str, Any]]:
    """List the full texts of a record (by its document key) that the caller may see.

    A text is its `key`, `document_id`, `title`, `source` and the `chunk_id` it begins with.
    """
    condition, parameters = permission_filter(auth, collection_id)
    shown = shown_id(connection, auth, collection_id)
    rows = connection.execute(
        f"""SELECT d.key, {shown} AS document_id, d.title, d.source,
                (SELECT c.chunk_id FROM chunks c WHERE c.document = d.id
                 ORDER BY c.ordinal LIMIT 1) AS chunk_id
            FROM documents record CROSS JOIN book_texts b ON b.book = record.id
            CROSS JOIN documents d ON d.id = b.text
            WHERE record.key = :key AND {condition} AND b.sum IS {LINK} ORDER BY d.document_id""",
        {**parameters, "key": key},
    )
    return [dict(row) for row in rows]


def _book(row: sqlite3.Row) -> dict[str, Any]:
    metadata = json.loads(row["metadata"])
    named = {name: row[name] for name in ("key", "document_id", "title", "source")}
    return {**named, "authors": metadata.get("authors") or [], "year": metadata.get("year")}
