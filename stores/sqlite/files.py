"""What an ingest has made of files: its batches, its journal, and the table of files.

A document is parsed, chunked, embedded and indexed; when it has been read back from every index
it is verified and leaves the journal. What is in `documents` and not there is verified.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, NamedTuple

from core.faults import fault
from stores.sqlite.catalogue import Collection
from stores.sqlite.database import CataloguePart
from stores.sqlite.embeddings import Vector, store_sentences, store_vectors
from stores.sqlite.permissions import OPERATOR, WriteAccess, add_alias, alias_of
from stores.sqlite.rows import ChunkRow, DocumentRow, FileRow
from stores.sqlite.sums import FILE, sign
from stores.sqlite.writer import (
    bump,
    carry_list,
    find_document,
    remove_document,
    replace_document,
    unswept,
)

PAGE = 500  # rows read at once; chosen, not measured: memory stays small beside a batch of chunks
DOCUMENTS = 100  # with all their texts read at once; chosen, not measured
SOUND = f"f.sum IS {FILE}"  # of a damaged row nothing is known: the file is read again

Stage = Literal["parsed", "chunked", "embedded", "indexed"]


class JournalEntry(NamedTuple):
    """Name a document on its way; `chunks` is how many it must have, 0 while unknown."""

    document_id: str
    file: str
    chunks: int = 0


@dataclass(frozen=True)
class LeftOutRow:
    """Name one text that was left out; `source` is what a person is shown."""

    file: str
    source: str
    document_id: str
    reason: str


@dataclass
class FinishedFile:
    """Hold a file that has been read to its end.

    `holds` tells whether a document is in it; `previous` is the name it had before a rename;
    `left_out` are texts of it that were left out.
    """

    file: FileRow
    holds: Callable[[str], bool]
    previous: str = ""
    left_out: Sequence[LeftOutRow] = ()


@dataclass
class Changes:
    """Hold what one transaction changes.

    `paths` are the places of the files that `documents` come from, by name, and `aliases` what
    their writer calls them, where that is another name; `previous` are the names that renamed
    files had; `moved` are the places of unchanged files;
    `replaced` are ids of documents that others stand for now; `left_out` is what was left out of
    each file that was read to its end.
    """

    documents: Sequence[DocumentRow] = ()
    paths: Mapping[str, str] = field(default_factory=dict)
    finished: Sequence[FinishedFile] = ()
    moved: Mapping[str, str] = field(default_factory=dict)
    replaced: Sequence[str] = ()
    left_out: Mapping[str, Sequence[LeftOutRow]] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    previous: Mapping[str, str] = field(default_factory=dict)

    def files(self) -> set[str]:
        """Return the names of all files that it changes."""
        ended = {one.file.relative for one in self.finished}
        before = {one.previous for one in self.finished if one.previous}
        return {*self.paths, *self.moved, *self.left_out, *ended, *before}


class Files(CataloguePart):
    """Write batches of an ingest; read and write what is known of its files."""

    def write_vectors(
        self,
        collection_id: int,
        model: str,
        vectors: Mapping[str, Vector],
        sentences: Mapping[str, Vector],
        entries: Iterable[JournalEntry],
    ) -> None:
        with self._database.write() as connection:
            store_vectors(connection, model, vectors)
            store_sentences(connection, model, sentences)
            _note(connection, collection_id, "embedded", entries)
            if vectors:
                unswept(connection)
            fault("embedded.before")
        fault("embedded.after")

    def write_batch(self, collection: Collection, changes: Changes, access: WriteAccess) -> None:
        renamed = any(finished.previous for finished in changes.finished)
        with self._database.write() as connection:
            _write(connection, collection, changes, access)
            fault("indexed.before")
            if renamed:
                fault("rename.before")
        fault("indexed.after")
        if renamed:
            fault("rename.after")

    def reach_stage(
        self, collection_id: int, stage: Stage, entries: Iterable[JournalEntry]
    ) -> None:
        entries = list(entries)
        if not entries:
            return
        with self._database.write() as connection:
            _note(connection, collection_id, stage, entries)
            fault(f"{stage}.before")
        fault(f"{stage}.after")

    def unverified_documents(self, collection_id: int, limit: int, after: str = "") -> list[str]:
        rows = self._all(
            """SELECT document_id FROM journal WHERE collection_id = ? AND stage = 'indexed'
               AND document_id > ? ORDER BY document_id LIMIT ?""",
            (collection_id, after, limit),
        )
        return [row[0] for row in rows]

    def mark_verified(self, collection_id: int, documents: Iterable[str]) -> None:
        documents = list(documents)
        if not documents:
            return
        with self._database.write() as connection:
            connection.executemany(
                """DELETE FROM journal
                   WHERE collection_id = ? AND document_id = ? AND stage = 'indexed'""",
                [(collection_id, document_id) for document_id in documents],
            )
            fault("verified.before")
        fault("verified.after")

    def pending_documents(self) -> list[dict[str, Any]]:
        rows = self._all(
            """SELECT c.tenant, c.name AS collection, j.file, j.stage, count(*) AS documents
               FROM journal j JOIN collections c ON c.id = j.collection_id
               GROUP BY c.tenant, c.name, j.file, j.stage
               ORDER BY c.tenant, c.name, j.file, j.stage"""
        )
        return [dict(row) for row in rows]

    def list_left_out(
        self, collection: Collection, file: str | None = None, limit: int = -1
    ) -> Iterator[LeftOutRow]:
        rows = self._database.read().execute(
            """SELECT file, source, document_id, reason FROM left_out
               WHERE collection_id = :c AND (:f IS NULL OR file = :f)
               ORDER BY file, source LIMIT :n""",
            {"c": collection.id, "f": file, "n": limit},
        )
        for row in rows:
            yield LeftOutRow(*row)

    def forget_files(
        self, collection: Collection, relatives: Iterable[str], access: WriteAccess = OPERATOR
    ) -> int:
        removed = 0
        with self._database.write() as connection:
            for relative in relatives:
                if not access.may_change_file(connection, collection.id, relative):
                    continue
                removed += _forget_file(connection, collection.id, relative, access)
            bump(connection)
            fault("prune.before")
        fault("prune.after")
        return removed

    def find_file(self, collection: Collection, relative: str) -> FileRow | None:
        query = f"SELECT * FROM files f WHERE collection_id = ? AND relative = ? AND {SOUND}"
        row = self._one(query, (collection.id, relative))
        return _file(row) if row else None

    def name_for(self, collection: Collection, name: str, access: WriteAccess) -> str:
        return access.file_name(self._database.read(), collection.id, name)

    def id_for(self, collection: Collection, file: str, name: str, access: WriteAccess) -> str:
        return access.document_id(self._database.read(), collection.id, file, name)

    def is_synced(self, collection: Collection, path: str) -> bool:
        query = "SELECT 1 FROM source_items WHERE collection_id = ? AND path = ?"
        return self._one(query, (collection.id, path)) is not None

    def original_name(self, collection: Collection, relative: str) -> str:
        return alias_of(self._database.read(), collection.id, "file", relative) or relative

    def files_with_fingerprint(self, collection: Collection, fingerprint: str) -> list[FileRow]:
        rows = self._all(
            f"""SELECT * FROM files f WHERE collection_id = ? AND fingerprint = ? AND {SOUND}
                ORDER BY relative""",
            (collection.id, fingerprint),
        )
        return [_file(row) for row in rows]

    def file_names(self, collection: Collection) -> Iterator[str]:
        query = f"""SELECT relative FROM files f
                    WHERE collection_id = :c AND relative > :last AND {SOUND}
               UNION SELECT file FROM documents WHERE collection_id = :c AND file > :last
               UNION SELECT file FROM journal WHERE collection_id = :c AND file > :last
               ORDER BY 1 LIMIT :page"""
        last = ""
        while rows := self._all(query, {"c": collection.id, "last": last, "page": PAGE}):
            yield from (row[0] for row in rows)
            last = rows[-1][0]

    def document_hash(self, collection: Collection, document_id: str) -> tuple[str, str] | None:
        row = self._one(
            "SELECT file, content_hash FROM documents WHERE collection_id = ? AND document_id = ?",
            (collection.id, document_id),
        )
        return (row[0], row[1]) if row else None

    def document_hashes(self, collection: Collection) -> dict[str, tuple[str, str]]:
        query = "SELECT document_id, file, content_hash FROM documents WHERE collection_id = ?"
        return {row[0]: (row[1], row[2]) for row in self._all(query, (collection.id,))}

    def count_in_files(
        self, collection: Collection, given: Callable[[str], bool]
    ) -> tuple[int, int]:
        rows = self._all(
            """SELECT d.file, count(DISTINCT d.id), count(c.id) FROM documents d
               LEFT JOIN chunks c ON c.document = d.id
               WHERE d.collection_id = ? GROUP BY d.file""",
            (collection.id,),
        )
        counted = [row for row in rows if given(row[0])]
        return sum(row[1] for row in counted), sum(row[2] for row in counted)

    def stored_documents(self, collection_id: int, file: str) -> Iterator[DocumentRow]:
        connection, last = self._database.read(), ""
        query = """SELECT * FROM documents WHERE collection_id = ? AND file = ? AND document_id > ?
            ORDER BY document_id LIMIT ?"""
        while rows := self._all(query, (collection_id, file, last, DOCUMENTS)):
            for row in rows:
                yield _document(connection, row)
            last = rows[-1]["document_id"]


def _note(
    connection: sqlite3.Connection,
    collection_id: int,
    stage: Stage,
    entries: Iterable[JournalEntry],
) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO journal VALUES (?, ?, ?, ?, ?)",
        [(collection_id, one.document_id, one.file, stage, one.chunks) for one in entries],
    )


def _write(
    connection: sqlite3.Connection, collection: Collection, changes: Changes, access: WriteAccess
) -> None:
    changed = bool(changes.documents)
    for name in changes.files():
        access.check_file(connection, collection.id, name)
    for name, path in changes.paths.items():
        _begin(connection, collection.id, name, path)
        if name in changes.aliases:
            add_alias(connection, collection.id, "file", name, changes.aliases[name])
    for name, before in changes.previous.items():
        carry_list(connection, collection.id, before, name)
    for document_id in changes.replaced:
        if row := find_document(connection, collection.id, document_id):
            remove_document(connection, collection.id, row["id"], access)
    for document in changes.documents:
        replace_document(connection, collection, document, access)
    rows = changes.documents
    entries = [JournalEntry(row.document_id, row.file, len(row.chunks)) for row in rows]
    _note(connection, collection.id, "indexed", entries)
    for finished in changes.finished:
        changed |= _finish_file(connection, collection.id, finished, access)
    for name, texts in changes.left_out.items():
        _replace_left_out(connection, collection.id, name, texts)
        _forget_unfinished(connection, collection.id, name)
    for name, path in changes.moved.items():
        query = "UPDATE files SET path = ? WHERE collection_id = ? AND relative = ?"
        connection.execute(query, (path, collection.id, name))
        _sign_file(connection, collection.id, name)
    if changed:
        bump(connection)


def _begin(connection: sqlite3.Connection, collection_id: int, name: str, path: str) -> None:
    """Note that the documents of a file are no longer those of its fingerprint."""
    connection.execute(
        """INSERT INTO files VALUES (?, ?, ?, '', '[]', NULL)
           ON CONFLICT (collection_id, relative)
           DO UPDATE SET fingerprint = '', path = excluded.path""",
        (collection_id, name, path),
    )
    _sign_file(connection, collection_id, name)


def _finish_file(
    connection: sqlite3.Connection, collection_id: int, finished: FinishedFile, access: WriteAccess
) -> bool:
    file = finished.file
    gone = _drop_documents(connection, collection_id, file.relative, finished.holds, access)
    if finished.previous:
        gone += _forget_file(connection, collection_id, finished.previous, access)
    _forget_unfinished(connection, collection_id, file.relative)
    _replace_left_out(connection, collection_id, file.relative, finished.left_out)
    connection.execute(
        """INSERT OR REPLACE INTO files
           VALUES (:collection, :relative, :path, :fingerprint, :failures, NULL)""",
        asdict(file)
        | {"collection": collection_id, "failures": json.dumps(file.failures, ensure_ascii=False)},
    )
    _sign_file(connection, collection_id, file.relative)
    if file.alias:
        add_alias(connection, collection_id, "file", file.relative, file.alias)
    return bool(gone)


def _sign_file(connection: sqlite3.Connection, collection_id: int, relative: str) -> None:
    sign(connection, "files", "f.collection_id = ? AND f.relative = ?", collection_id, relative)


def _drop_documents(
    connection: sqlite3.Connection,
    collection_id: int,
    file: str,
    keeps: Callable[[str], bool],
    access: WriteAccess,
) -> int:
    gone, last = 0, 0
    while rows := connection.execute(
        """SELECT id, document_id FROM documents
           WHERE collection_id = ? AND file = ? AND id > ? ORDER BY id LIMIT ?""",
        (collection_id, file, last, PAGE),
    ).fetchall():
        last = rows[-1]["id"]
        for row in rows:
            if not keeps(row["document_id"]):
                remove_document(connection, collection_id, row["id"], access)
                gone += 1
    return gone


def _forget_file(
    connection: sqlite3.Connection, collection_id: int, relative: str, access: WriteAccess
) -> int:
    gone = _drop_documents(connection, collection_id, relative, lambda _: False, access)
    _forget_unfinished(connection, collection_id, relative)
    query = "DELETE FROM files WHERE collection_id = ? AND relative = ?"
    connection.execute(query, (collection_id, relative))
    return gone


def _forget_unfinished(connection: sqlite3.Connection, collection_id: int, file: str) -> None:
    """Take documents out of the journal that never became rows: their file has them no longer."""
    connection.execute(
        "DELETE FROM journal WHERE collection_id = ? AND file = ? AND stage != 'indexed'",
        (collection_id, file),
    )


def _replace_left_out(
    connection: sqlite3.Connection, collection_id: int, file: str, rows: Sequence[LeftOutRow]
) -> None:
    query = "DELETE FROM left_out WHERE collection_id = ? AND file = ?"
    connection.execute(query, (collection_id, file))
    connection.executemany(
        "INSERT OR REPLACE INTO left_out VALUES (?, ?, ?, ?, ?)",
        [(collection_id, file, row.source, row.document_id, row.reason) for row in rows],
    )


def _file(row: sqlite3.Row) -> FileRow:
    failures = json.loads(row["failures"])
    return FileRow(row["relative"], row["path"], row["fingerprint"], failures)


# Columns of a table that a row as ingest hands it over has under the same names.
_APART = {"acl", "fields", "chunks", "alias"}
_OF_DOCUMENT = {one.name for one in fields(DocumentRow)} - _APART
_OF_CHUNK = {one.name for one in fields(ChunkRow)}


def _document(connection: sqlite3.Connection, row: sqlite3.Row) -> DocumentRow:
    def of(query: str) -> list[Any]:
        return connection.execute(query, (row["id"],)).fetchall()

    acl = of("SELECT principal FROM document_acl WHERE document = ?")
    named = of("SELECT name, value, number FROM record_fields WHERE document = ? ORDER BY rowid")
    chunks = of("SELECT * FROM chunks WHERE document = ? ORDER BY ordinal")
    values = {name: row[name] for name in _OF_DOCUMENT}
    values |= {"is_record": bool(row["is_record"]), "metadata": json.loads(row["metadata"])}
    return DocumentRow(
        **values,
        fields=[(name, value, number) for name, value, number in named],
        chunks=[ChunkRow(**{name: chunk[name] for name in _OF_CHUNK}) for chunk in chunks],
        acl=frozenset(principal for (principal,) in acl),
    )
