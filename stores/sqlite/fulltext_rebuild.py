"""Rebuild the full-text index of a collection from its chunks."""

from __future__ import annotations

from collections.abc import Callable

from stores.sqlite import fulltext
from stores.sqlite.database import Database
from stores.sqlite.writer import keyword_text, searched_text

CHUNKS = """SELECT c.id, c.section, c.text, c.context, d.title, d.language, d.metadata
    FROM chunks c JOIN documents d ON d.id = c.document
    WHERE c.collection_id = ? ORDER BY c.id"""
STEP = 100  # chunks between two words of progress


def rebuild_fulltext(
    database: Database, collection_id: int, progress: Callable[[int, int], None] | None = None
) -> int:
    """Drop the index, write it in one transaction, and return the number of chunks."""
    with database.write() as connection:
        fulltext.drop_table(connection, collection_id)
        fulltext.create_table(connection, collection_id)
        connection.text_factory = _decoded  # a damaged text may be none
        try:
            chunks = connection.execute(CHUNKS, (collection_id,)).fetchall()
        finally:
            connection.text_factory = str
        for done, chunk in enumerate(chunks, start=1):
            parts = (
                chunk["title"],
                _keywords(chunk["metadata"]),
                chunk["section"],
                searched_text(chunk["text"], chunk["context"]),
            )
            fulltext.insert(connection, collection_id, chunk["id"], parts, chunk["language"])
            if progress is not None and (done % STEP == 0 or done == len(chunks)):
                progress(done, len(chunks))
    return len(chunks)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _keywords(metadata: str) -> str:
    try:
        return keyword_text(metadata)
    except (ValueError, AttributeError):  # damaged, and withheld
        return ""
