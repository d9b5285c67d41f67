"""Find documents that are to go, and take them out: rows, vectors, text in neighbours."""

from __future__ import annotations

import difflib
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Collection as AbstractCollection
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.errors import AbsentError
from stores.sqlite import fulltext
from stores.sqlite.catalogue import Collection
from stores.sqlite.permissions import ALIAS_OF, IS_ROW, WriteAccess, is_called
from stores.sqlite.rows import NEXT, PREVIOUS
from stores.sqlite.sums import VECTORS, sign
from stores.sqlite.writer import drop_list, remove_document

# Characters of a neighbour's text by which it is known again; chosen, not measured.
SEEN = 60
NOTED = ("left_out", "journal")


@dataclass(frozen=True)
class Gone:
    """Name one document of a collection that is to go, by its row and by what people call it."""

    row_id: int
    key: str
    document_id: str
    file: str
    source: str
    title: str
    path: str = ""
    alias: str = ""
    file_alias: str = ""
    is_open: int = 1
    is_record: int = 0

    @property
    def ids(self) -> set[str]:
        """Return the ids under which callers were shown it."""
        return {self.document_id, self.alias or self.document_id}

    @property
    def given_file(self) -> str:
        """Return what its writer called its file."""
        return self.file_alias or self.file

    @property
    def upload(self) -> str:
        """Return the id of the upload that made it, as far as it was one."""
        return upload_of(self.path)

    @property
    def names(self) -> set[str]:
        """Return all its names."""
        return {*self.ids, self.file, self.source, self.title, self.path}


PATH = """coalesce((SELECT f.path FROM files f WHERE f.collection_id = d.collection_id
    AND f.relative = d.file), '')"""
COLUMNS = f"""d.id AS row_id, d.key, d.document_id, d.file, d.source, d.title, d.is_open,
    d.is_record, coalesce({ALIAS_OF}, '') AS alias,
    coalesce((SELECT k.alias FROM aliases k WHERE k.collection_id = d.collection_id
              AND k.kind = 'file' AND k.stored = d.file), '') AS file_alias,
    {PATH} AS path"""


def upload_of(path: str) -> str:
    """Return the id of the job whose upload has this path: each has a folder of its own."""
    return Path(path).parent.name


def rows_of_tables(
    connection: sqlite3.Connection, collection_id: int, documents: Sequence[Gone]
) -> list[Gone]:
    """Return the rows of the tables of these documents, which go with them, beside those named."""
    found: dict[int, Gone] = {}
    for one in documents:
        rows = connection.execute(
            f"""SELECT {COLUMNS} FROM documents d WHERE d.collection_id = ?1 AND d.file = ?2
                AND {IS_ROW} AND substr(d.source, 1, length(?3) + 1) = ?3 || '#'""",
            (collection_id, one.file, one.source),
        )
        found |= {row["row_id"]: Gone(**dict(row)) for row in rows}
    named = {one.row_id for one in documents}
    return [one for row_id, one in found.items() if row_id not in named]


def erase_documents(
    connection: sqlite3.Connection,
    collection_id: int,
    documents: Sequence[Gone],
    access: WriteAccess,
) -> Counter[str]:
    """Delete documents within the caller's transaction; return what was deleted, by kind."""
    hashes: set[str] = set()
    counts: Counter[str] = Counter(documents=len(documents))
    for document in documents:
        chunks = connection.execute(
            "SELECT text, content_hash FROM chunks WHERE document = ? ORDER BY ordinal",
            (document.row_id,),
        ).fetchall()
        remove_document(connection, collection_id, document.row_id, access)
        counts["chunks"] += len(chunks)
        hashes |= {chunk["content_hash"] for chunk in chunks}
        if chunks:
            first, last = chunks[0]["text"], chunks[-1]["text"]
            _forget_context(connection, collection_id, document.file, first, last)
    counts["vectors"] = forget_vectors(connection, hashes)
    counts["files"] = _forget_files(connection, collection_id, {one.file for one in documents})
    _forget_noted(connection, collection_id, [one.document_id for one in documents])
    return counts


def forget_vectors(connection: sqlite3.Connection, hashes: AbstractCollection[str]) -> int:
    """Drop the vectors of these texts that no chunk has any more; return how many."""
    wanted = json.dumps(sorted(hashes))
    rows = connection.execute(
        """SELECT value FROM json_each(?) EXCEPT SELECT content_hash FROM chunks""", (wanted,)
    )
    gone = json.dumps([row[0] for row in rows])
    return sum(
        connection.execute(
            f"DELETE FROM {table} WHERE content_hash IN (SELECT value FROM json_each(?))", (gone,)
        ).rowcount
        for table in VECTORS
    )


def _forget_files(
    connection: sqlite3.Connection, collection_id: int, files: AbstractCollection[str]
) -> int:
    """Forget files without documents: each is a new one to the next ingest, if still there."""
    gone = connection.execute(
        """DELETE FROM files WHERE collection_id = :c
           AND relative IN (SELECT value FROM json_each(:files)) AND NOT EXISTS
           (SELECT 1 FROM documents d WHERE d.collection_id = :c AND d.file = files.relative)
           RETURNING relative""",
        {"c": collection_id, "files": json.dumps(sorted(files))},
    ).fetchall()
    for row in gone:
        drop_list(connection, collection_id, row["relative"])
    return len(gone)


def _forget_noted(connection: sqlite3.Connection, collection_id: int, names: Sequence[str]) -> None:
    """Forget what ingest has noted under these ids: what was left out, what is on its way."""
    for table in NOTED:
        connection.execute(
            f"DELETE FROM {table} WHERE collection_id = ?"
            " AND document_id IN (SELECT value FROM json_each(?))",
            (collection_id, json.dumps(names)),
        )


def _forget_context(
    connection: sqlite3.Connection, collection_id: int, file: str, first: str, last: str
) -> None:
    """Take the document's beginning and end out of the context of its neighbours in the file."""
    rows = connection.execute(
        """SELECT c.id, c.context FROM documents d JOIN chunks c ON c.document = d.id
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
        sign(connection, "chunks", "c.id = ?", row["id"])
        fulltext.write_again(connection, collection_id, "c.id = ?", row["id"])


def _is_of(line: str, first: str, last: str) -> bool:
    """Tell whether a line of context is the end of a text before, or the beginning of one after."""
    if line.startswith(PREVIOUS):
        text = line.removeprefix(PREVIOUS)
        return last.endswith(text[-SEEN:]) or text.endswith(last)
    text = line.removeprefix(NEXT)
    return first.startswith(text[:SEEN]) or text.startswith(first)


NEAREST = 3  # names in a hint; chosen, not measured
ALIKE = 0.4  # of difflib's ratio, whose own is 0.6; chosen, not measured
# Names among which the nearest are looked for; chosen, not measured: comparing takes seconds.
CONSIDERED = 100_000


# A path as it is typed has folders that the name of a file in the collection lacks. All of it must
# be in the stored path: a file of another folder that is called the same is another document.
TYPED = f"""{PATH} = :name OR substr({PATH}, -length(:name) - 1) = '/' || :name
    AND substr(:name, -length(d.file) - 1) = '/' || d.file"""


def named_document(connection: sqlite3.Connection, collection: Collection, name: str) -> Gone:
    """Return the document of this id, source, file or key, or of the path it was ingested from.

    Raises AbsentError with the nearest names, or with the keys of all that their writers gave this
    id: whoever saw only one of them could not tell which it is.
    """
    named = {column: f"d.{column} = :name" for column in ("document_id", "source", "file", "key")}
    named |= {"document_id": is_called(":name"), "path": f"({TYPED})"}
    for column, condition in named.items():
        given = _whole_path(name) if column == "path" else name
        found = _documents(connection, collection, condition, {"name": given})
        if len(found) == 1:
            return found[0]
        if not found:
            continue
        hint = f"give an id such as '{found[0].document_id}', or all of them with --source"
        if column == "document_id":
            column = "id"
            keys = ", ".join(f"{one.key} ('{one.document_id}')" for one in found)
            hint = f"give the key of one: {keys}"
        raise AbsentError(
            f"one document is named by its id; {len(found)} have this {column}",
            value=name,
            hint=hint,
        )
    raise _absent("document", connection, collection, name)


def _whole_path(name: str) -> str:
    """Return a path as ingest keeps it; what a relative one begins at is not known here."""
    return os.path.realpath(name) if os.path.isabs(name) else os.path.normpath(name)


def documents_in(
    connection: sqlite3.Connection, collection: Collection, files: Sequence[str]
) -> list[Gone]:
    """Return the documents of these files, by the names under which they are kept."""
    condition = "d.file IN (SELECT value FROM json_each(:files))"
    return _documents(connection, collection, condition, {"files": json.dumps(files)})


def documents_of(
    connection: sqlite3.Connection, collection: Collection, patterns: Sequence[str]
) -> list[Gone]:
    """Return the documents whose file or source fits any of the patterns (shell globs).

    Raises AbsentError for a pattern that nothing fits.
    """
    found: dict[int, Gone] = {}
    for pattern in patterns:
        condition = " OR ".join(
            f"d.{column} = :p OR d.{column} GLOB :p" for column in ("file", "source")
        )
        fitting = _documents(connection, collection, f"({condition})", {"p": pattern})
        if not fitting:
            raise _absent("source", connection, collection, pattern)
        found |= {one.row_id: one for one in fitting}
    return list(found.values())


def _documents(
    connection: sqlite3.Connection,
    collection: Collection,
    condition: str,
    values: dict[str, object],
) -> list[Gone]:
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM documents d WHERE d.collection_id = :c AND {condition}"
        " ORDER BY d.id",
        {"c": collection.id, **values},
    )
    return [Gone(**dict(row)) for row in rows]


def _absent(
    what: str, connection: sqlite3.Connection, collection: Collection, name: str
) -> AbsentError:
    column = "document_id" if what == "document" else "file"
    rows = connection.execute(
        f"SELECT DISTINCT {column} FROM documents WHERE collection_id = ? LIMIT ?",
        (collection.id, CONSIDERED),
    )
    names = [row[0] for row in rows]
    near = difflib.get_close_matches(name, names, n=NEAREST, cutoff=ALIKE)
    hint = (
        f"`carrel documents -c {collection.name}` lists what is there" if names else "it is empty"
    )
    hint = "the nearest are " + ", ".join(f"'{one}'" for one in near) if near else hint
    return AbsentError(
        f"the {what} must be in the collection '{collection.name}'", value=name, hint=hint
    )
