"""Delete one document for good: from the catalogue, and its text from all that was made of it.

The truth and the runs are changed before `erase` returns, so nothing finds the document any more.
Chroma, the inside of the full-text index and the log of SQLite follow with `tidy`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from core.auth import AuthContext
from stores import fulltext
from stores.catalogue import MAX_VARIABLES, Collection
from stores.database import Database
from stores.outbox import Outbox
from stores.permissions import permission_filter
from stores.rows import NEXT, PREVIOUS
from stores.runs import Runs
from stores.sums import sign_documents
from stores.writer import bump, keyword_text, remove_document, searched_text

SEEN = 60  # characters of a neighbour's text by which it is known again
MERGED = 500  # pages that one step of tidying the full-text index may write


class Erasure:
    """Delete documents that a caller may see."""

    def __init__(self, database: Database, runs: Runs, outbox: Outbox) -> None:
        """Use the catalogue's file."""
        self._database = database
        self._runs = runs
        self._outbox = outbox

    def erase(self, auth: AuthContext, collection: Collection, document_id: str) -> bool:
        """Delete a document and its text in stored runs; return False for one the caller lacks."""
        condition, parameters = permission_filter(auth, collection.id)
        with self._database.write() as connection:
            row = connection.execute(
                f"SELECT d.id, d.file FROM documents d WHERE {condition} AND d.document_id = :id",
                {**parameters, "id": document_id},
            ).fetchone()
            if row is None:
                return False
            _erase(connection, collection.id, row["id"], row["file"])
            bump(connection)
        # A run that is kept after this finds the document gone and leaves its text out itself.
        self._runs.redact(collection.tenant, collection.name, {document_id})
        return True

    def tidy(self, collection_id: int, step: Callable[[], None] = lambda: None) -> None:
        """Take deleted text out of the derived indexes and of SQLite's log.

        It takes as long as writing the full-text index once. `step` is called between its parts,
        and may raise to end it; what is left is done by the next call.
        """
        self._outbox.drain(lambda count: step())
        name = fulltext.table(collection_id)
        pages = -MERGED  # the first step marks all parts for merging
        while self._merged(name, pages):
            pages = MERGED
            step()
        self._database.checkpoint()

    def _merged(self, name: str, pages: int) -> bool:
        with self._database.write() as connection:
            known = "SELECT 1 FROM sqlite_schema WHERE name = ?"
            if connection.execute(known, (name,)).fetchone() is None:
                return False
            before = connection.total_changes
            connection.execute(f"INSERT INTO {name} ({name}, rank) VALUES ('merge', ?)", (pages,))
            return connection.total_changes - before >= 2  # SQLite's own sign of work left


def _erase(connection: sqlite3.Connection, collection_id: int, row_id: int, file: str) -> None:
    chunks = connection.execute(
        "SELECT text, content_hash FROM chunks WHERE document = ? ORDER BY ordinal", (row_id,)
    ).fetchall()
    remove_document(connection, collection_id, row_id)
    _forget_vectors(connection, {chunk["content_hash"] for chunk in chunks})
    if chunks:
        _forget_context(connection, collection_id, file, chunks[0]["text"], chunks[-1]["text"])
    # A file without documents is a new one to the next ingest, if it is still there.
    connection.execute(
        """DELETE FROM files WHERE collection_id = :c AND relative = :f AND NOT EXISTS
           (SELECT 1 FROM documents WHERE collection_id = :c AND file = :f)""",
        {"c": collection_id, "f": file},
    )


def _forget_vectors(connection: sqlite3.Connection, hashes: set[str]) -> None:
    """Drop vectors that no other chunk has; the same text may stand in another document."""
    wanted = sorted(hashes)
    for start in range(0, len(wanted), MAX_VARIABLES):
        part = wanted[start : start + MAX_VARIABLES]
        marks = ", ".join("?" * len(part))
        query = f"SELECT DISTINCT content_hash FROM chunks WHERE content_hash IN ({marks})"
        shared = {row[0] for row in connection.execute(query, part)}
        gone = [(key,) for key in part if key not in shared]
        for table in ("embeddings", "sentence_vectors"):
            connection.executemany(f"DELETE FROM {table} WHERE content_hash = ?", gone)


def _forget_context(
    connection: sqlite3.Connection, collection_id: int, file: str, first: str, last: str
) -> None:
    """Take the document's beginning and end out of the context of its neighbours in the file."""
    rows = connection.execute(
        """SELECT c.id, c.document, c.text, c.context, c.section, d.title, d.language, d.metadata
           FROM documents d JOIN chunks c ON c.document = d.id
           WHERE d.collection_id = ? AND d.file = ? AND c.context != ''""",
        (collection_id, file),
    ).fetchall()
    first, last = " ".join(first.split()), " ".join(last.split())
    for row in rows:
        lines = row["context"].split("\n")
        kept = "\n".join(line for line in lines if not _is_of(line, first, last))
        if kept == row["context"]:
            continue
        connection.execute("UPDATE chunks SET context = ? WHERE id = ?", (kept, row["id"]))
        sign_documents(connection, [row["document"]])
        fulltext.delete(connection, collection_id, [row["id"]])
        body = searched_text(row["text"], kept)
        parts = (row["title"], keyword_text(row["metadata"]), row["section"], body)
        fulltext.insert(connection, collection_id, row["id"], parts, row["language"])


def _is_of(line: str, first: str, last: str) -> bool:
    """Tell whether a line of context is the end of a text before, or the beginning of one after."""
    if line.startswith(PREVIOUS):
        text = line.removeprefix(PREVIOUS)
        return last.endswith(text[-SEEN:]) or text.endswith(last)
    text = line.removeprefix(NEXT)
    return first.startswith(text[:SEEN]) or text.startswith(first)
