"""Find what is to be forgotten: one document by a name people know, or all of a source."""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Sequence

from core.errors import AbsentError
from stores.erasure.documents import COLUMNS, Gone
from stores.sqlite.aliases import is_called
from stores.sqlite.catalogue import Collection

NEAREST = 3
CONSIDERED = 100_000  # names among which the nearest are looked for


def named_document(connection: sqlite3.Connection, collection: Collection, name: str) -> Gone:
    """Return the document of this id, source, file or key.

    Raises AbsentError with the nearest names, or with the keys of all that their writers gave this
    id: whoever saw only one of them could not tell which it is.
    """
    for column in ("document_id", "source", "file", "key"):
        named = is_called(":name") if column == "document_id" else f"d.{column} = :name"
        found = _documents(connection, collection, named, {"name": name})
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
    near = difflib.get_close_matches(name, names, n=NEAREST, cutoff=0.4) or names[:NEAREST]
    hint = "the nearest are " + ", ".join(f"'{one}'" for one in near) if near else "it is empty"
    return AbsentError(
        f"the {what} must be in the collection '{collection.name}'", value=name, hint=hint
    )
