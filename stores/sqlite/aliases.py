"""Names that a writer gave to what is kept under another one, since theirs is taken.

Ids of documents and names of files are unique in a collection. What is taken may be hidden from a
writer, who must not learn it: their document gets an id of its own and the name becomes its alias.
Who sees no other document of that name is shown the alias, everybody else the id.
"""

from __future__ import annotations

import sqlite3
from typing import Literal

from core.auth import AuthContext
from stores.sqlite.permissions import permission_filter
from stores.sqlite.sums import ALIAS, sign

Kind = Literal["document", "file"]

# SQL over `documents d`: the name that its writer gave a document, NULL for its own id.
ALIAS_OF = """(SELECT k.alias FROM aliases k WHERE k.collection_id = d.collection_id
    AND k.kind = 'document' AND k.stored = d.document_id)"""
GIVEN_ID = f"coalesce({ALIAS_OF}, d.document_id)"
_HAS_ALIAS = """d.document_id IN (SELECT k.stored FROM aliases k
    WHERE k.collection_id = d.collection_id AND k.kind = 'document' AND k.alias = {name})"""


def add_alias(
    connection: sqlite3.Connection, collection_id: int, kind: Kind, stored: str, alias: str
) -> None:
    """Note within a transaction what a writer called something; it goes with what it names."""
    values = (collection_id, kind, stored)
    connection.execute("INSERT OR REPLACE INTO aliases VALUES (?, ?, ?, ?, NULL)", (*values, alias))
    sign(connection, "aliases", "k.collection_id = ? AND k.kind = ? AND k.stored = ?", *values)


def stored_names(
    connection: sqlite3.Connection, collection_id: int, kind: Kind, alias: str
) -> list[str]:
    """Return the ids, or the names of files, that have an alias, in order."""
    rows = connection.execute(
        """SELECT stored FROM aliases WHERE collection_id = ? AND kind = ? AND alias = ?
           ORDER BY stored""",
        (collection_id, kind, alias),
    )
    return [row[0] for row in rows]


def alias_of(connection: sqlite3.Connection, collection_id: int, kind: Kind, stored: str) -> str:
    """Return the alias of an id, or of the name of a file, "" for none."""
    row = connection.execute(
        "SELECT alias FROM aliases WHERE collection_id = ? AND kind = ? AND stored = ?",
        (collection_id, kind, stored),
    ).fetchone()
    return row[0] if row else ""


def shown_id(connection: sqlite3.Connection, auth: AuthContext, collection_id: int) -> str:
    """Return the SQL, over `documents d`, of the id under which a caller is shown a document.

    Its parameters are those of the caller's `permission_filter`.
    """
    known = "SELECT 1 FROM aliases WHERE collection_id = ? AND kind = 'document' LIMIT 1"
    if connection.execute(known, (collection_id,)).fetchone() is None:
        return "d.document_id"
    visible, _ = permission_filter(auth.rights, collection_id, table="o", sums=False)
    return f"""coalesce((SELECT k.alias FROM aliases k WHERE k.collection_id = d.collection_id
        AND k.kind = 'document' AND k.stored = d.document_id AND k.sum IS {ALIAS}
        AND NOT EXISTS (SELECT 1 FROM documents o WHERE o.document_id = k.alias AND {visible})
        AND NOT EXISTS (SELECT 1 FROM aliases s CROSS JOIN documents o
            ON o.collection_id = s.collection_id AND o.document_id = s.stored
            WHERE s.collection_id = k.collection_id AND s.kind = k.kind AND s.alias = k.alias
            AND s.stored < k.stored AND {visible})), d.document_id)"""


def is_shown_as(shown: str, name: str) -> str:
    """Return the SQL condition that a document is the one shown as `name`, a parameter's SQL."""
    if shown == "d.document_id":
        return f"d.document_id = {name}"
    return f"(d.document_id = {name} OR {_HAS_ALIAS.format(name=name)}) AND {shown} = {name}"


def is_called(name: str) -> str:
    """Return the SQL condition that `name` is a document's id or alias."""
    return f"(d.document_id = {name} OR {_HAS_ALIAS.format(name=name)})"
