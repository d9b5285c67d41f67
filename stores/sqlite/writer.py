"""Change the truth: documents with their chunks, in one transaction a batch.

A search index reads what is new from here, so that an interruption anywhere is made good by the
next run.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from core.faults import fault
from core.profile import Profile
from stores.coordination import INGEST
from stores.sqlite import fulltext, sums
from stores.sqlite.catalogue import Collection, damaged_collection
from stores.sqlite.database import CataloguePart
from stores.sqlite.embeddings import Vector, known_hashes, store_sentences, store_vectors
from stores.sqlite.permissions import GIVEN_ID, WriteAccess, add_alias
from stores.sqlite.rows import DocumentRow, digest
from stores.sqlite.schema import SECRET
from stores.sqlite.sums import sign

TABLES = ("collections", "documents", "chunks")


def next_id(table: str) -> str:
    """Return the SQL of the next row id of one of `TABLES`; a trigger notes what was used."""
    assert table in TABLES
    return f"(SELECT CAST(value AS INTEGER) + 1 FROM meta WHERE key = 'last_{table}')"


_UNEMBEDDED = """FROM chunks c JOIN documents d ON d.id = c.document
    WHERE c.id > :last AND (:collection IS NULL OR c.collection_id = :collection)
    AND (NOT EXISTS (SELECT 1 FROM embeddings e
        WHERE e.content_hash = c.content_hash AND e.model = :model)
    OR (:sentences = 1 AND NOT EXISTS (SELECT 1 FROM sentence_vectors s
        WHERE s.content_hash = c.content_hash AND s.model = :model)))"""


DEFAULT_LIST = "default"  # where the digest of a file would stand


class UnembeddedChunk(NamedTuple):
    """Hold what a chunk without a vector is embedded with; `document_id` is as its writer gave."""

    content_hash: str
    title: str
    section: str
    text: str
    context: str
    language: str
    document_id: str
    metadata: dict[str, Any]
    ordinal: int


class Writer(CataloguePart):
    """Write documents and collections."""

    def open_collection(self, tenant: str, name: str, profile: Profile | None) -> Collection:
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
            sign(connection, "collections", "o.id = ?", row[0])
            fulltext.create_table(connection, row[0])
        return Collection(row[0], tenant, name, profile, row[1])

    def drop_collection_if_empty(self, collection: Collection) -> None:
        with self.alone() as alone, self._database.write() as connection:
            if not alone:
                return  # who ingests may be about to fill it; the last one drops it
            count = connection.execute(
                "SELECT count(*) FROM documents WHERE collection_id = ?", (collection.id,)
            ).fetchone()[0]
            if not count:
                connection.execute("DELETE FROM files WHERE collection_id = ?", (collection.id,))
                if default_list(connection, collection.id):
                    return  # else what comes next would be open
                connection.execute("DELETE FROM collections WHERE id = ?", (collection.id,))
                drop_lists(connection, collection.id)
                fulltext.drop_table(connection, collection.id)

    def missing_vectors(self, model: str, hashes: Iterable[str]) -> set[str]:
        wanted = set(hashes)
        return wanted - known_hashes(self._database.read(), model, wanted)

    def store_vectors(
        self,
        model: str,
        vectors: Mapping[str, Vector],
        sentences: Mapping[str, Vector] | None = None,
    ) -> None:
        with self._database.write() as connection:
            store_vectors(connection, model, vectors)
            store_sentences(connection, model, sentences or {})
            bump(connection)

    def count_unembedded(self, model: str, collection_id: int | None, *, sentences: bool) -> int:
        bound = {"last": 0, "collection": collection_id, "model": model, "sentences": sentences}
        return int(self._value(f"SELECT count(DISTINCT c.content_hash) {_UNEMBEDDED}", bound))

    def unembedded(
        self, model: str, collection_id: int | None, batch: int, *, sentences: bool
    ) -> Iterator[list[UnembeddedChunk]]:
        bound = {"collection": collection_id, "model": model, "sentences": sentences, "last": 0}
        query = f"""SELECT c.id, c.content_hash, d.title, c.section, c.text, c.context, d.language,
            {GIVEN_ID} AS document_id, d.metadata, c.ordinal
            {_UNEMBEDDED} ORDER BY c.id LIMIT :batch"""
        while rows := self._all(query, {**bound, "batch": batch}):
            yield [UnembeddedChunk._make((*row[1:8], json.loads(row[8]), row[9])) for row in rows]
            bound["last"] = rows[-1]["id"]

    def ingesting(self) -> AbstractContextManager[bool]:
        return self._database.coordination.lock(INGEST, shared=True)

    def alone(self) -> AbstractContextManager[bool]:
        return self._database.coordination.lock(INGEST, wait=False)

    def count_vectors(self, model: str) -> int:
        query = """SELECT count(*) FROM chunks c JOIN embeddings e
            ON e.content_hash = c.content_hash AND e.model = ?"""
        return int(self._value(query, (model,)))

    def arrangement(self, collection: Collection) -> str:
        query = "SELECT value FROM meta WHERE key = ?"
        return str(self._value(query, (f"arranged_{collection.id}",)) or "")

    def note_arrangement(
        self, collection: Collection, mark: str, version: int, *, changed: bool
    ) -> None:
        query = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'index_version'"
        with self._database.write() as connection:
            found = int(connection.execute(query).fetchone()[0])
            if changed:
                bump(connection)
            if found != version:
                return  # another process has brought more meanwhile
            connection.execute(
                """INSERT OR REPLACE INTO meta
                   SELECT ?, value || ':' || ? FROM meta WHERE key = 'index_version'""",
                (f"arranged_{collection.id}", mark),
            )

    def sweep_vectors(self) -> int:
        if self._value("SELECT value FROM meta WHERE key = 'unswept'") == "0":
            return 0
        dropped = 0
        with self.alone() as alone, self._database.write() as connection:
            if not alone:
                return 0  # others have vectors whose chunks follow; the last one sweeps
            for table in sums.VECTORS:
                cursor = connection.execute(
                    f"""DELETE FROM {table} WHERE NOT EXISTS
                        (SELECT 1 FROM chunks c WHERE c.content_hash = {table}.content_hash)"""
                )
                dropped = max(dropped, cursor.rowcount)
            connection.execute("UPDATE meta SET value = '0' WHERE key = 'unswept'")
            fault("sweep.before")
        fault("sweep.after")
        return dropped


def bump(connection: sqlite3.Connection) -> None:
    """Raise the index version, which every cache of results holds with what it keeps."""
    connection.execute(
        "UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'index_version'"
    )


def unswept(connection: sqlite3.Connection) -> None:
    """Note that there may be vectors of texts that no chunk has."""
    connection.execute("UPDATE meta SET value = '1' WHERE key = 'unswept' AND value != '1'")


def find_document(
    connection: sqlite3.Connection, collection_id: int, document_id: str
) -> sqlite3.Row | None:
    """Return row id and file of the document that is kept under an id."""
    query = "SELECT id, file FROM documents WHERE collection_id = ? AND document_id = ?"
    row: sqlite3.Row | None = connection.execute(query, (collection_id, document_id)).fetchone()
    return row


def replace_document(
    connection: sqlite3.Connection,
    collection: Collection,
    document: DocumentRow,
    access: WriteAccess,
) -> None:
    """Insert a document with all its rows in place of the one that has its id.

    Raises InUseError when that is one that the writer may not change.
    """
    row = find_document(connection, collection.id, document.document_id)
    if row is not None:
        remove_document(connection, collection.id, row["id"], access)
        if row["file"] != document.file:  # which is not unchanged when it comes again
            carry_list(connection, collection.id, row["file"], document.file)
            of_file = (collection.id, row["file"])
            query = "UPDATE files SET fingerprint = '' WHERE collection_id = ? AND relative = ?"
            connection.execute(query, of_file)
            sign(connection, "files", "f.collection_id = ? AND f.relative = ?", *of_file)
    _insert(connection, collection, document)


def remove_document(
    connection: sqlite3.Connection, collection_id: int, row_id: int, access: WriteAccess
) -> None:
    """Remove a document with all its rows; raises InUseError for one not to be changed."""
    access.check_document(connection, collection_id, row_id)
    chunks = connection.execute("SELECT id FROM chunks WHERE document = ?", (row_id,)).fetchall()
    fulltext.delete(connection, collection_id, [row["id"] for row in chunks])
    connection.execute("DELETE FROM documents WHERE id = ?", (row_id,))  # cascades
    unswept(connection)


def _insert(connection: sqlite3.Connection, collection: Collection, document: DocumentRow) -> None:
    metadata = json.dumps(document.metadata, ensure_ascii=False)
    given = {"collection": collection.id, "tenant": collection.tenant, "metadata": metadata}
    was_set = set_list(connection, collection.id, document.file)
    acl = document.acl or was_set
    if was_set != acl:  # an ingest that names readers has the last word
        drop_list(connection, collection.id, document.file)
    elif not acl and (acl := _default_for_file(connection, collection.id, document.file)):
        note_list(connection, collection.id, document.file, sorted(acl))  # whatever is set later
    row_id = _inserted(
        connection,
        f"""INSERT INTO documents (id, key, collection_id, tenant, document_id, file, source, title,
           format, language, is_record, is_open, version, updated_at, content_hash, metadata,
           body_hash, indexed_at) VALUES ({next_id("documents")}, :key, :collection, :tenant,
           :document_id, :file, :source, :title, :format, :language, :is_record, :is_open, :version,
           :updated_at, :content_hash, :metadata, :body_hash, datetime('now'))""",
        {**vars(document), **given, "is_open": not acl},
    )
    connection.executemany(
        "INSERT INTO document_acl VALUES (?, ?)", [(row_id, role) for role in acl]
    )
    connection.executemany(
        "INSERT INTO record_fields VALUES (?, ?, ?, ?, ?, ?)",
        [
            (row_id, collection.id, name, value, value.casefold(), number)
            for name, value, number in document.fields
        ],
    )
    of_document = {"document": row_id, "collection": collection.id}
    for chunk in document.chunks:
        rowid = _inserted(
            connection,
            f"""INSERT INTO chunks (id, chunk_id, document, collection_id, ordinal, text, kind,
               section, page, tokens, content_hash, context) VALUES ({next_id("chunks")},
               :chunk_id, :document, :collection, :ordinal, :text, :kind, :section, :page, :tokens,
               :content_hash, :context)""",
            {**vars(chunk), **of_document},
        )
        of_chunk = {"title": document.title, "language": document.language, "metadata": metadata}
        fulltext.insert(connection, collection.id, {**vars(chunk), **of_chunk, "id": rowid})
    sums.sign_documents(connection, [row_id])
    if document.alias:
        add_alias(connection, collection.id, "document", document.document_id, document.alias)


def _inserted(connection: sqlite3.Connection, statement: str, values: dict[str, Any]) -> int:
    row_id = connection.execute(statement, values).lastrowid
    assert row_id is not None  # an INSERT always has one
    return row_id


def note_list(
    connection: sqlite3.Connection, collection_id: int, file: str, acl: list[str]
) -> None:
    """Note within a transaction the list that a file was given; an empty one is none."""
    row = (_key(collection_id, file), json.dumps(acl))
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", row)


def set_list(connection: sqlite3.Connection, collection_id: int, file: str) -> frozenset[str]:
    """Return the list that a file was given, empty for none."""
    query = "SELECT value FROM meta WHERE key = ?"
    row = connection.execute(query, (_key(collection_id, file),)).fetchone()
    return frozenset(json.loads(row[0])) if row else frozenset()


def note_default(connection: sqlite3.Connection, collection_id: int, acl: list[str]) -> None:
    """Note the list of what comes into a collection without one; an empty one is none."""
    row = (f"acl_{collection_id}_{DEFAULT_LIST}", json.dumps(acl))
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", row)


def default_list(connection: sqlite3.Connection, collection_id: int) -> frozenset[str]:
    """Return the list of what comes into a collection without one, empty for none."""
    query = "SELECT value FROM meta WHERE key = ?"
    row = connection.execute(query, (f"acl_{collection_id}_{DEFAULT_LIST}",)).fetchone()
    return frozenset(json.loads(row[0])) if row else frozenset()


def _default_for_file(
    connection: sqlite3.Connection, collection_id: int, file: str
) -> frozenset[str]:
    """Return a collection's default for a file without a document yet: a file has one list."""
    acl = default_list(connection, collection_id)
    query = "SELECT 1 FROM documents WHERE collection_id = ? AND file = ? LIMIT 1"
    known = acl and connection.execute(query, (collection_id, file)).fetchone()
    return frozenset() if known else acl


def drop_list(connection: sqlite3.Connection, collection_id: int, file: str) -> None:
    """Forget the list that a file was given."""
    connection.execute("DELETE FROM meta WHERE key = ?", (_key(collection_id, file),))


def drop_lists(connection: sqlite3.Connection, collection_id: int) -> None:
    """Forget the lists that files of a collection were given."""
    connection.execute("DELETE FROM meta WHERE key GLOB ?", (f"acl_{collection_id}_*",))


def carry_list(connection: sqlite3.Connection, collection_id: int, old: str, new: str) -> None:
    """Let a file that takes documents of another over keep the list that it was given."""
    acl = set_list(connection, collection_id, old)
    if acl and not set_list(connection, collection_id, new):
        note_list(connection, collection_id, new, sorted(acl))


def _key(collection_id: int, file: str) -> str:
    return f"acl_{collection_id}_{digest(file)}"
