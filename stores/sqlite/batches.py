"""Write what an ingest has made of a batch, each step with its journal in one transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from core.faults import fault
from stores.sqlite.aliases import add_alias
from stores.sqlite.catalogue import Collection
from stores.sqlite.database import Database
from stores.sqlite.embeddings import Vector, store_sentences, store_vectors
from stores.sqlite.journal import (
    JournalEntry,
    LeftOutRow,
    forget_unfinished,
    note,
    replace_left_out,
)
from stores.sqlite.rows import DocumentRow, FileRow
from stores.sqlite.sums import sign
from stores.sqlite.write_access import WriteAccess
from stores.sqlite.writer import bump, remove_document, replace_document

PAGE = 500


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
    their writer calls them, where that is another name; `moved` are the places of unchanged files;
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

    def files(self) -> set[str]:
        """Return the names of all files that it changes."""
        ended = {one.file.relative for one in self.finished}
        before = {one.previous for one in self.finished if one.previous}
        return {*self.paths, *self.moved, *self.left_out, *ended, *before}


class Batches:
    """Write batches of an ingest."""

    def __init__(self, database: Database) -> None:
        """Write to `database`."""
        self._database = database

    def write_vectors(
        self,
        collection_id: int,
        model: str,
        vectors: Mapping[str, Vector],
        sentences: Mapping[str, Vector],
        entries: Iterable[JournalEntry],
    ) -> None:
        """Keep the vectors of a batch before its documents: they took longest to make."""
        with self._database.write() as connection:
            store_vectors(connection, model, vectors)
            store_sentences(connection, model, sentences)
            note(connection, collection_id, "embedded", entries)
            if vectors:
                unswept(connection)
            fault("embedded.before")
        fault("embedded.after")

    def write_batch(self, collection: Collection, changes: Changes, access: WriteAccess) -> None:
        """Write documents with their full text, and what became of their files.

        Raises InUseError, and changes nothing, when the writer may not change one of them.
        """
        with self._database.write() as connection:
            changed = bool(changes.documents)
            for name in changes.files():
                access.check_file(connection, collection.id, name)
            for name, path in changes.paths.items():
                _begin(connection, collection.id, name, path)
                if name in changes.aliases:
                    add_alias(connection, collection.id, "file", name, changes.aliases[name])
            for document_id in changes.replaced:
                _remove(connection, collection.id, document_id, access)
            for document in changes.documents:
                replace_document(connection, collection, document, access)
            entries = [
                JournalEntry(row.document_id, row.file, len(row.chunks))
                for row in changes.documents
            ]
            note(connection, collection.id, "indexed", entries)
            for finished in changes.finished:
                changed |= finish_file(connection, collection.id, finished, access)
            for name, rows in changes.left_out.items():
                replace_left_out(connection, collection.id, name, rows)
            connection.executemany(
                "UPDATE files SET path = ? WHERE collection_id = ? AND relative = ?",
                [(path, collection.id, name) for name, path in changes.moved.items()],
            )
            for name in changes.moved:
                _sign_file(connection, collection.id, name)
            if changed:
                bump(connection)
            fault("indexed.before")
            if any(finished.previous for finished in changes.finished):
                fault("rename.before")
        fault("indexed.after")
        if any(finished.previous for finished in changes.finished):
            fault("rename.after")


def unswept(connection: sqlite3.Connection) -> None:
    """Note that there may be vectors of texts that no chunk has."""
    connection.execute("UPDATE meta SET value = '1' WHERE key = 'unswept' AND value != '1'")


def _begin(connection: sqlite3.Connection, collection_id: int, name: str, path: str) -> None:
    """Note that the documents of a file are no longer those of its fingerprint."""
    connection.execute(
        """INSERT INTO files VALUES (?, ?, ?, '', '[]', NULL)
           ON CONFLICT (collection_id, relative)
           DO UPDATE SET fingerprint = '', path = excluded.path""",
        (collection_id, name, path),
    )
    _sign_file(connection, collection_id, name)


def _remove(
    connection: sqlite3.Connection, collection_id: int, document_id: str, access: WriteAccess
) -> None:
    row = connection.execute(
        "SELECT id FROM documents WHERE collection_id = ? AND document_id = ?",
        (collection_id, document_id),
    ).fetchone()
    remove_document(connection, collection_id, row["id"] if row else None, access)


def finish_file(
    connection: sqlite3.Connection, collection_id: int, finished: FinishedFile, access: WriteAccess
) -> bool:
    """Note a file as done; return whether documents went that it no longer contains."""
    file = finished.file
    gone = drop_documents(connection, collection_id, file.relative, finished.holds, access)
    if finished.previous:
        old = finished.previous
        gone += drop_documents(connection, collection_id, old, lambda _: False, access)
        forget_file(connection, collection_id, old)
    forget_unfinished(connection, collection_id, file.relative)
    replace_left_out(connection, collection_id, file.relative, finished.left_out)
    connection.execute(
        "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, NULL)",
        (
            collection_id,
            file.relative,
            file.path,
            file.fingerprint,
            json.dumps(file.failures, ensure_ascii=False),
        ),
    )
    _sign_file(connection, collection_id, file.relative)
    if file.alias:
        add_alias(connection, collection_id, "file", file.relative, file.alias)
    return bool(gone)


def _sign_file(connection: sqlite3.Connection, collection_id: int, relative: str) -> None:
    sign(connection, "files", "f.collection_id = ? AND f.relative = ?", collection_id, relative)


def drop_documents(
    connection: sqlite3.Connection,
    collection_id: int,
    file: str,
    keeps: Callable[[str], bool],
    access: WriteAccess,
) -> int:
    """Remove the documents of a file but those that it keeps; return how many went."""
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


def forget_file(connection: sqlite3.Connection, collection_id: int, relative: str) -> None:
    """Remove what is known of a file that has no documents left."""
    forget_unfinished(connection, collection_id, relative)
    connection.execute(
        "DELETE FROM files WHERE collection_id = ? AND relative = ?", (collection_id, relative)
    )
