"""Change the truth: documents with their chunks, in one transaction a batch.

What Chroma must still learn is noted in the outbox within the same transaction, as a set of chunk
ids, so that an interruption anywhere is made good by the next run.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from core.profile import Profile
from stores import fulltext, sums
from stores.aliases import add_alias
from stores.catalogue import Collection, damaged_collection
from stores.database import Database
from stores.embeddings import Vector, known_hashes, store_sentences, store_vectors
from stores.migrations_ids import SECRET
from stores.row_ids import next_id
from stores.rows import ChunkRow, DocumentRow
from stores.sums_records import sign
from stores.write_access import OPERATOR, WriteAccess


class Writer:
    """Write documents and collections."""

    def __init__(self, database: Database) -> None:
        """Write to `database`."""
        self._database = database

    def open_collection(self, tenant: str, name: str, profile: Profile | None) -> Collection:
        """Return the collection, making it when missing; a given profile replaces the stored."""
        with self._database.write() as connection:
            stored = connection.execute(
                f"""SELECT o.profile, o.sum IS {sums.COLLECTION} AS sound FROM collections o
                    WHERE o.tenant = ? AND o.name = ?""",
                (tenant, name),
            ).fetchone()
            if profile is None:
                if stored and not stored["sound"]:
                    raise damaged_collection(name)
                profile = (
                    Profile.model_validate_json(stored[0]) if stored else Profile(name="default")
                )
            connection.execute(
                f"""INSERT INTO collections (id, tenant, name, profile, created_at)
                   VALUES ({next_id("collections")}, ?, ?, ?, datetime('now'))
                   ON CONFLICT (tenant, name) DO UPDATE SET profile = excluded.profile""",
                (tenant, name, profile.model_dump_json()),
            )
            row = connection.execute(
                f"SELECT id, {SECRET} FROM collections WHERE tenant = ? AND name = ?",
                (tenant, name),
            ).fetchone()
            sums.sign_collection(connection, row[0])
            fulltext.create_table(connection, row[0])
        return Collection(row[0], tenant, name, profile, row[1])

    def drop_collection_if_empty(self, collection: Collection) -> None:
        """Take back a collection into which nothing could be ingested."""
        with self._database.write() as connection:
            count = connection.execute(
                "SELECT count(*) FROM documents WHERE collection_id = ?", (collection.id,)
            ).fetchone()[0]
            if not count:
                connection.execute("DELETE FROM files WHERE collection_id = ?", (collection.id,))
                connection.execute("DELETE FROM collections WHERE id = ?", (collection.id,))
                fulltext.drop_table(connection, collection.id)

    def missing_vectors(self, model: str, hashes: Iterable[str]) -> set[str]:
        """Return which text hashes have no vector of this model yet."""
        wanted = set(hashes)
        return wanted - known_hashes(self._database.read(), model, wanted)

    def store_vectors(
        self,
        model: str,
        vectors: Mapping[str, Vector],
        sentences: Mapping[str, Vector] | None = None,
    ) -> None:
        """Keep vectors by text hash, and those of their sentences; searches see them at once."""
        with self._database.write() as connection:
            store_vectors(connection, model, vectors)
            store_sentences(connection, model, sentences or {})
            bump(connection)

    def write_documents(
        self,
        collection: Collection,
        documents: Sequence[DocumentRow],
        model: str,
        vectors: Mapping[str, Vector],
        sentences: Mapping[str, Vector] | None = None,
        access: WriteAccess = OPERATOR,
    ) -> None:
        """Insert or replace documents with everything that belongs to them."""
        if not documents and not vectors:
            return
        with self._database.write() as connection:
            store_vectors(connection, model, vectors)
            store_sentences(connection, model, sentences or {})
            for document in documents:
                replace_document(connection, collection, document, access)
            bump(connection)


def bump(connection: sqlite3.Connection) -> None:
    """Raise the index version, which every cache of results holds with what it keeps."""
    connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'index_version'")


def replace_document(
    connection: sqlite3.Connection,
    collection: Collection,
    document: DocumentRow,
    access: WriteAccess,
) -> None:
    """Insert a document with all its rows in place of the one that has its id.

    Raises InUseError when that is one that the writer may not change.
    """
    row = connection.execute(
        "SELECT id, file FROM documents WHERE collection_id = ? AND document_id = ?",
        (collection.id, document.document_id),
    ).fetchone()
    if row is not None:
        remove_document(connection, collection.id, row["id"], access)
        if row["file"] != document.file:  # which is not unchanged when it comes again
            of_file = (collection.id, row["file"])
            query = "UPDATE files SET fingerprint = '' WHERE collection_id = ? AND relative = ?"
            connection.execute(query, of_file)
            sign(connection, "files", "f.collection_id = ? AND f.relative = ?", *of_file)
    _insert(connection, collection, document)


def remove_document(
    connection: sqlite3.Connection, collection_id: int, row_id: int | None, access: WriteAccess
) -> None:
    """Remove a document with all its rows; Chroma learns it from the outbox.

    Raises InUseError for one that the writer may not change.
    """
    if row_id is None:
        return
    access.check_document(connection, collection_id, row_id)
    chunks = connection.execute(
        "SELECT id, chunk_id FROM chunks WHERE document = ?", (row_id,)
    ).fetchall()
    fulltext.delete(connection, collection_id, [row["id"] for row in chunks])
    connection.executemany(
        "INSERT OR REPLACE INTO outbox VALUES (?, ?, 'delete')",
        [(row["chunk_id"], collection_id) for row in chunks],
    )
    connection.execute("DELETE FROM documents WHERE id = ?", (row_id,))  # cascades
    connection.execute("UPDATE meta SET value = '1' WHERE key = 'unswept' AND value != '1'")


def _insert(connection: sqlite3.Connection, collection: Collection, document: DocumentRow) -> None:
    cursor = connection.execute(
        f"""INSERT INTO documents (id, key, collection_id, tenant, document_id, file, source, title,
           format, language, is_record, is_open, version, updated_at, content_hash, metadata,
           body_hash, indexed_at) VALUES ({next_id("documents")},
           ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, datetime('now'))""",
        (
            document.key,
            collection.id,
            collection.tenant,
            document.document_id,
            document.file,
            document.source,
            document.title,
            document.format,
            document.language,
            int(document.is_record),
            int(not document.acl),
            document.version,
            document.updated_at,
            document.content_hash,
            json.dumps(document.metadata, ensure_ascii=False),
            document.body_hash,
        ),
    )
    row_id = cursor.lastrowid
    assert row_id is not None  # an INSERT always has one
    connection.executemany(
        "INSERT INTO document_acl VALUES (?, ?)", [(row_id, role) for role in document.acl]
    )
    connection.executemany(
        "INSERT INTO record_fields VALUES (?, ?, ?, ?, ?, ?)",
        [
            (row_id, collection.id, name, value, value.casefold(), number)
            for name, value, number in document.fields
        ],
    )
    keywords = keyword_text(json.dumps(document.metadata, ensure_ascii=False))
    for chunk in document.chunks:
        rowid = _insert_chunk(connection, collection.id, row_id, chunk)
        body = searched_text(chunk.text, chunk.context)
        parts = (document.title, keywords, chunk.section, body)
        fulltext.insert(connection, collection.id, rowid, parts, document.language)
    sums.sign_documents(connection, [row_id])
    if document.alias:
        add_alias(connection, collection.id, "document", document.document_id, document.alias)


def _insert_chunk(
    connection: sqlite3.Connection, collection_id: int, document: int, chunk: ChunkRow
) -> int:
    """Insert a chunk, tell the outbox, and return the row id."""
    cursor = connection.execute(
        f"""INSERT INTO chunks (id, chunk_id, document, collection_id, ordinal, text, kind, section,
           page, tokens, content_hash, context)
           VALUES ({next_id("chunks")}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (
            chunk.chunk_id,
            document,
            collection_id,
            chunk.ordinal,
            chunk.text,
            chunk.kind,
            chunk.section,
            chunk.page,
            chunk.tokens,
            chunk.content_hash,
            chunk.context,
        ),
    )
    connection.execute(
        "INSERT OR REPLACE INTO outbox VALUES (?, ?, 'upsert')", (chunk.chunk_id, collection_id)
    )
    rowid = cursor.lastrowid
    assert rowid is not None  # an INSERT always has one
    return rowid


def searched_text(text: str, context: str) -> str:
    """Return what full text indexes as the body of a chunk: its own text twice, its context once.

    BM25 sums frequencies over columns, so a neighbour's word counts half as much as its own.
    """
    return f"{text}\n{text}\n{context}" if context else text


def keyword_text(metadata: str) -> str:
    """Return the keywords and authors of a document's metadata, given as JSON."""
    loaded: dict[str, Any] = json.loads(metadata)
    values: list[str] = []
    for name in ("keywords", "authors"):
        value = loaded.get(name)
        values += value if isinstance(value, list) else [value] if isinstance(value, str) else []
    return " ".join(str(value) for value in values)
