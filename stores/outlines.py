"""What the documents of a collection are called and are made of, under a caller's permissions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from core.auth import AuthContext
from stores.database import Database
from stores.permissions import permission_filter


class DocumentName(NamedTuple):
    """Hold what a document is called; `row` is its row id, `first` the id of its first chunk."""

    row: int
    title: str
    source: str
    format: str
    version: str
    first: str


def document_names(database: Database, auth: AuthContext, collection_id: int) -> list[DocumentName]:
    """Return what the documents a caller may see are called, in the order of their sources."""
    condition, parameters = permission_filter(auth, collection_id)
    rows = database.read().execute(
        f"""SELECT d.id, d.title, d.source, d.format, d.version, c.chunk_id FROM documents d
            JOIN chunks c ON c.document = d.id AND c.ordinal = 0
            WHERE {condition} ORDER BY d.source, d.id""",
        parameters,
    )
    return [DocumentName(*row) for row in rows]


def chunk_ids(database: Database, documents: Sequence[int]) -> list[str]:
    """Return the ids of the chunks of documents, by row ids, whose text is running text.

    Of a document without any, all. What of them a caller may see is for the catalogue to say.
    """
    found: list[str] = []
    for document in documents:
        rows = (
            database.read()
            .execute(
                "SELECT chunk_id, kind FROM chunks WHERE document = ? ORDER BY ordinal", (document,)
            )
            .fetchall()
        )
        kinds = ("annotation",) if any(kind == "annotation" for _, kind in rows) else ("text",)
        found += [key for key, kind in rows if kind in kinds] or [key for key, _ in rows]
    return found
