"""The table of files: which were ingested, with what result, and which documents are theirs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator

from core.faults import fault
from stores.sqlite.aliases import alias_of
from stores.sqlite.batches import FinishedFile, drop_documents, finish_file, forget_file
from stores.sqlite.catalogue import Collection
from stores.sqlite.database import Database
from stores.sqlite.rows import ChunkRow, DocumentRow, FileRow
from stores.sqlite.sums import FILE
from stores.sqlite.write_access import OPERATOR, WriteAccess
from stores.sqlite.writer import bump

PAGE = 500
DOCUMENTS = 100  # read at once
SOUND = f"f.sum IS {FILE}"  # of a damaged row nothing is known: the file is read again


class Files:
    """Read and write what is known of the ingested files of a collection."""

    def __init__(self, database: Database) -> None:
        """Use the catalogue's `database`."""
        self._database = database

    def finish_file(self, collection: Collection, file: FileRow, document_ids: set[str]) -> None:
        """Note a file as done and drop the documents it no longer contains."""
        with self._database.write() as connection:
            finished = FinishedFile(file, document_ids.__contains__)
            if finish_file(connection, collection.id, finished, OPERATOR):
                bump(connection)

    def forget_files(
        self, collection: Collection, relatives: Iterable[str], access: WriteAccess = OPERATOR
    ) -> int:
        """Remove files with all their documents; return how many documents went.

        Files that the writer may not change stay.
        """
        removed = 0
        with self._database.write() as connection:
            for relative in relatives:
                if not access.may_change_file(connection, collection.id, relative):
                    continue
                removed += drop_documents(
                    connection, collection.id, relative, lambda _: False, access
                )
                forget_file(connection, collection.id, relative)
            bump(connection)
            fault("prune.before")
        fault("prune.after")
        return removed

    def find_file(self, collection: Collection, relative: str) -> FileRow | None:
        """Return what is known of one file."""
        query = f"SELECT * FROM files f WHERE collection_id = ? AND relative = ? AND {SOUND}"
        row = self._database.read().execute(query, (collection.id, relative)).fetchone()
        return _file(row) if row else None

    def name_for(self, collection: Collection, name: str, access: WriteAccess) -> str:
        """Return the name under which a file is kept that its writer calls `name`."""
        return access.file_name(self._database.read(), collection.id, name)

    def id_for(self, collection: Collection, file: str, name: str, access: WriteAccess) -> str:
        """Return the id under which a document of a file is kept that its writer calls `name`."""
        return access.document_id(self._database.read(), collection.id, file, name)

    def original_name(self, collection: Collection, relative: str) -> str:
        """Return what its writer calls a file."""
        return alias_of(self._database.read(), collection.id, "file", relative) or relative

    def files_with_fingerprint(self, collection: Collection, fingerprint: str) -> list[FileRow]:
        """Return the files of the same bytes, read under the same settings, by name."""
        rows = self._database.read().execute(
            f"""SELECT * FROM files f WHERE collection_id = ? AND fingerprint = ? AND {SOUND}
                ORDER BY relative""",
            (collection.id, fingerprint),
        )
        return [_file(row) for row in rows]

    def list_files(self, collection: Collection) -> dict[str, FileRow]:
        """Return the ingested files of a collection by relative path."""
        rows = self._database.read().execute(
            f"SELECT * FROM files f WHERE collection_id = ? AND {SOUND}", (collection.id,)
        )
        return {row["relative"]: _file(row) for row in rows}

    def file_names(self, collection: Collection) -> Iterator[str]:
        """Yield the names of all files, also of those that an interrupted run began."""
        last = ""
        while (
            rows := self._database.read()
            .execute(
                f"""SELECT relative FROM files f
                    WHERE collection_id = :c AND relative > :last AND {SOUND}
               UNION SELECT file FROM documents WHERE collection_id = :c AND file > :last
               UNION SELECT file FROM journal WHERE collection_id = :c AND file > :last
               ORDER BY 1 LIMIT :page""",
                {"c": collection.id, "last": last, "page": PAGE},
            )
            .fetchall()
        ):
            yield from (row[0] for row in rows)
            last = rows[-1][0]

    def document_hash(self, collection: Collection, document_id: str) -> tuple[str, str] | None:
        """Return (file, content hash) of one document."""
        row = (
            self._database.read()
            .execute(
                """SELECT file, content_hash FROM documents
                   WHERE collection_id = ? AND document_id = ?""",
                (collection.id, document_id),
            )
            .fetchone()
        )
        return (row[0], row[1]) if row else None

    def document_hashes(self, collection: Collection) -> dict[str, tuple[str, str]]:
        """Return (file, content hash) of each document by document id."""
        rows = self._database.read().execute(
            "SELECT document_id, file, content_hash FROM documents WHERE collection_id = ?",
            (collection.id,),
        )
        return {row[0]: (row[1], row[2]) for row in rows}

    def count_in_files(
        self, collection: Collection, given: Callable[[str], bool]
    ) -> tuple[int, int]:
        """Count the documents and chunks that the files of these names amount to."""
        rows = self._database.read().execute(
            """SELECT d.file, count(DISTINCT d.id), count(c.id) FROM documents d
               LEFT JOIN chunks c ON c.document = d.id
               WHERE d.collection_id = ? GROUP BY d.file""",
            (collection.id,),
        )
        documents = chunks = 0
        for row in rows:
            if given(row[0]):
                documents, chunks = documents + row[1], chunks + row[2]
        return documents, chunks

    def stored_documents(self, collection_id: int, file: str) -> Iterator[DocumentRow]:
        """Yield the documents of a file by id, a page at a time; they may be removed meanwhile."""
        connection, last = self._database.read(), ""
        while True:
            rows = connection.execute(
                """SELECT * FROM documents WHERE collection_id = ? AND file = ? AND document_id > ?
                   ORDER BY document_id LIMIT ?""",
                (collection_id, file, last, DOCUMENTS),
            ).fetchall()
            if not rows:
                return
            for row in rows:
                yield _document(connection, row)
            last = rows[-1]["document_id"]


def _file(row: sqlite3.Row) -> FileRow:
    failures = json.loads(row["failures"])
    return FileRow(row["relative"], row["path"], row["fingerprint"], failures)


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
