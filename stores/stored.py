"""Read documents back from the truth as the rows that ingest writes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator

from stores.rows import ChunkRow, DocumentRow

PAGE = 100


def stored_documents(
    connection: sqlite3.Connection, collection_id: int, file: str
) -> Iterator[DocumentRow]:
    """Yield the documents of a file by id, a page at a time; they may be removed meanwhile."""
    last = ""
    while True:
        rows = connection.execute(
            """SELECT * FROM documents WHERE collection_id = ? AND file = ? AND document_id > ?
               ORDER BY document_id LIMIT ?""",
            (collection_id, file, last, PAGE),
        ).fetchall()
        if not rows:
            return
        for row in rows:
            yield _document(connection, row)
        last = rows[-1]["document_id"]


def _document(connection: sqlite3.Connection, row: sqlite3.Row) -> DocumentRow:
    acl = connection.execute("SELECT principal FROM document_acl WHERE document = ?", (row["id"],))
    fields = connection.execute(
        "SELECT name, value, number FROM record_fields WHERE document = ? ORDER BY rowid",
        (row["id"],),
    )
    chunks = connection.execute(
        "SELECT * FROM chunks WHERE document = ? ORDER BY ordinal", (row["id"],)
    )
    return DocumentRow(
        key=row["key"],
        document_id=row["document_id"],
        file=row["file"],
        source=row["source"],
        title=row["title"],
        format=row["format"],
        language=row["language"],
        is_record=bool(row["is_record"]),
        version=row["version"],
        updated_at=row["updated_at"],
        content_hash=row["content_hash"],
        metadata=json.loads(row["metadata"]),
        fields=[(field[0], field[1], field[2]) for field in fields],
        chunks=[_chunk(chunk) for chunk in chunks],
        acl=frozenset(principal[0] for principal in acl),
        body_hash=row["body_hash"],
    )


def _chunk(row: sqlite3.Row) -> ChunkRow:
    return ChunkRow(
        chunk_id=row["chunk_id"],
        ordinal=row["ordinal"],
        text=row["text"],
        kind=row["kind"],
        section=row["section"],
        page=row["page"],
        tokens=row["tokens"],
        content_hash=row["content_hash"],
        context=row["context"],
    )
