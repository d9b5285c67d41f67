"""Read documents back from the catalogue before anyone is assured that they are kept."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence

from stores.sqlite import fulltext
from stores.sqlite.catalogue import MAX_VARIABLES
from stores.sqlite.database import Database
from stores.sqlite.fulltext import keyword_text, searched_text
from stores.sqlite.sums import CHUNK, DERIVED, DOCUMENT, SENTENCES, VECTOR, drop_damaged, sign
from stores.sqlite.writer import bump


class Verifier:
    """Compare documents of the journal with the catalogue and its full text."""

    def __init__(self, database: Database, model: str, *, batch: int) -> None:
        """Read `batch` rows at a time, with vectors of `model`."""
        self._database = database
        self._model = model
        self._batch = batch

    def missing(self, collection_id: int, documents: Sequence[str]) -> dict[str, str]:
        """Return what each incomplete document lacks, by document id."""
        problems: dict[str, str] = {}
        for start in range(0, len(documents), MAX_VARIABLES):
            self._check(collection_id, documents[start : start + MAX_VARIABLES], problems)
        return problems

    def _check(self, collection_id: int, part: Sequence[str], problems: dict[str, str]) -> None:
        marks = ", ".join("?" * len(part))
        cursor = self._database.read().execute(
            f"""SELECT j.document_id, j.chunks, c.chunk_id, c.document,
                       e.vector IS NOT NULL AS has_vector,
                       f.rowid AS indexed
                FROM journal j
                LEFT JOIN documents d
                    ON d.collection_id = j.collection_id AND d.document_id = j.document_id
                LEFT JOIN chunks c ON c.document = d.id
                LEFT JOIN {fulltext.table(collection_id)} f ON f.rowid = c.id
                LEFT JOIN embeddings e ON e.content_hash = c.content_hash AND e.model = ?
                WHERE j.collection_id = ? AND j.stage = 'indexed' AND j.document_id IN ({marks})""",
            (self._model, collection_id, *part),
        )
        expected: dict[str, int] = {}
        found: Counter[str] = Counter()
        while rows := cursor.fetchmany(self._batch):
            there = [row for row in rows if row["chunk_id"] is not None]
            _check_rows(there, problems)
            expected |= {row["document_id"]: row["chunks"] for row in rows}
            found.update(row["document_id"] for row in there)
        for document_id, count in expected.items():
            if found[document_id] != count:
                problems[document_id] = f"{found[document_id]} of its {count} chunks are there"


def _check_rows(rows: list[sqlite3.Row], problems: dict[str, str]) -> None:
    for row in rows:
        if row["indexed"] is None:
            problems[row["document_id"]] = "its text is not in the full-text index"
        elif not row["has_vector"]:
            problems[row["document_id"]] = "it has no vector of the current model"


def index_words_again(
    connection: sqlite3.Connection, collection_id: int, documents: Sequence[str]
) -> None:
    """Write their full text again."""
    for document_id in documents:
        rows = connection.execute(
            """SELECT c.id, c.chunk_id, c.text, c.context, c.section, d.title, d.language,
                      d.metadata
               FROM documents d JOIN chunks c ON c.document = d.id
               WHERE d.collection_id = ? AND d.document_id = ?""",
            (collection_id, document_id),
        ).fetchall()
        fulltext.delete(connection, collection_id, [row["id"] for row in rows])
        for row in rows:
            body = searched_text(row["text"], row["context"])
            parts = (row["title"], keyword_text(row["metadata"]), row["section"], body)
            fulltext.insert(connection, collection_id, row["id"], parts, row["language"])


def drop_vectors(connection: sqlite3.Connection) -> int:
    """Delete the damaged vectors within a transaction; return how many."""
    dropped = 0
    for alias, table, own in (
        ("e", "embeddings", VECTOR),
        ("s", "sentence_vectors", SENTENCES),
    ):
        query = f"DELETE FROM {table} AS {alias} WHERE {alias}.sum IS NOT {own}"
        dropped += connection.execute(query).rowcount
    bump(connection)
    return dropped


def read_anew(database: Database) -> int:
    """Make the next ingest read the files of damaged documents; return how many these are."""
    with database.write() as connection:
        drop_damaged(connection, *DERIVED)
        rows = connection.execute(
            f"""SELECT DISTINCT d.id FROM documents d LEFT JOIN chunks c ON c.document = d.id
                WHERE d.sum IS NOT {DOCUMENT} OR (c.id IS NOT NULL AND c.sum IS NOT {CHUNK})"""
        ).fetchall()
        for row in rows:
            connection.execute(
                """UPDATE files SET fingerprint = '' WHERE EXISTS (SELECT 1 FROM documents d
                   WHERE d.id = ? AND d.collection_id = files.collection_id
                       AND d.file = files.relative)""",
                (row[0],),
            )
            connection.execute("UPDATE documents SET content_hash = '' WHERE id = ?", (row[0],))
        sign(connection, "files", "f.fingerprint = ''")
    return len(rows)
