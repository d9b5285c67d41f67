"""The one place that decides what a caller may see, under which id, and what a writer may change.

Ids of documents and names of files are unique in a collection. What is taken may be hidden from a
writer, who must not learn it: their document gets an id of its own and the name becomes its alias.
Who sees no other document of that name is shown the alias, everybody else the id.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Literal

from core.auth import AuthContext
from core.errors import InUseError
from core.metadata import (
    ANY,
    LATEST,
    TABLE_FORMAT,
    document_family,
    meets_filter,
    version_order,
)
from stores.sqlite.schema import SECRET
from stores.sqlite.sums import ALIAS, DOCUMENT, sign

Parameters = dict[str, object]
MATCHES = "source_matches"  # fnmatch.fnmatchcase(source, pattern)
MEETS, FAMILY, ORDER = "meets_filter", "document_family", "version_order"
# Whether a document's sum was seen to be right, and whether it is; of sqlite.database.
KNOWN, SOUND = "known_sum", "is_sound"
HAS_SUM = f"({KNOWN}(d.id, d.sum) OR {SOUND}(d.id, d.sum, {DOCUMENT}))"
GROUP = 100  # conditions side by side: SQLite takes expressions 1,000 deep; chosen, not measured


def register_permissions(connection: sqlite3.Connection) -> None:
    """Let SQL on this connection use the functions of a permission filter."""

    def of_texts(function: Callable[..., str | bool]) -> Callable[..., str | bool]:
        def called(*values: bytes | str) -> str | bool:
            texts = (v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in values)
            return function(*texts)

        return called

    connection.create_function(MATCHES, 2, fnmatchcase, deterministic=True)
    connection.create_function(MEETS, -1, of_texts(meets_filter), deterministic=True)
    connection.create_function(FAMILY, 2, of_texts(document_family), deterministic=True)
    connection.create_function(ORDER, 1, of_texts(version_order), deterministic=True)


# SQL over `documents d`: whether one is a row of a table whose document has it as its text, too.
# What the source says first needs no more of a document than an index has.
IS_ROW = f"(d.source GLOB '*#*![0-9]*' AND d.format = '{TABLE_FORMAT}')"


def permission_filter(
    auth: AuthContext,
    collection_id: int,
    sources: Sequence[str] = (),
    *,
    with_damaged: bool = False,
    sums: bool = True,
    table: str = "d",
) -> tuple[str, Parameters]:
    """Return an SQL condition over `documents d`, or another name in place of d; its parameters.

    A document is visible when it is of the caller's tenant and collection, is open to the tenant or
    names one of the caller's principals, lies within the allowed sources, fits the version policy,
    matches one of `sources` (shell patterns of the tool) when any are given, meets the caller's
    filters, was not found damaged, and has its sum: one flipped bit could open it. Without `sums`
    that is not looked at, for chunks that are compared with theirs and their document's before they
    become evidence, and for any name but d. With `with_damaged` damaged documents count as what
    their rows say.
    """
    parameters: Parameters = {"p_tenant": auth.tenant, "p_collection": collection_id}
    conditions = [f"{table}.tenant = :p_tenant", f"{table}.collection_id = :p_collection"]
    if not with_damaged:  # rows that are not what was written
        conditions.append(f"{table}.id NOT IN (SELECT document FROM quarantine)")
    principals = _bind(parameters, "p_principal", sorted(auth.principals))
    conditions.append(
        f"({table}.is_open = 1 OR EXISTS (SELECT 1 FROM document_acl a"
        f" WHERE a.document = {table}.id AND a.principal IN ({principals})))"
    )
    if auth.allowed_sources is not None:
        conditions.append(_any_pattern(parameters, "p_allowed", auth.allowed_sources, table))
    if sources:
        conditions.append(_any_pattern(parameters, "p_source", sources, table))
    if auth.asked_version:
        parameters["p_version"] = auth.asked_version
        conditions.append(f"{table}.version IN ('', :p_version)")
    if auth.version_policy == LATEST or any(one.latest for one in auth.where):
        conditions.append(_latest(auth, collection_id, table, with_damaged=with_damaged))
    for n, one in enumerate(auth.where):
        if not one.latest:
            parameters[f"p_where{n}"] = str(one)
            columns = ", ".join(_bytes(table, column) for column in one.columns)
            conditions.append(f"{MEETS}(:p_where{n}, {columns})")
    if sums and not with_damaged and table == "d":  # last, since it reads the whole row
        conditions.append(HAS_SUM)
    return " AND ".join(conditions), parameters


def _latest(auth: AuthContext, collection_id: int, table: str, *, with_damaged: bool) -> str:
    """Return the condition that of its versions a document is the newest that the caller may see.

    One that is hidden from them is not known to be there. It has the same parameters.
    """
    rights = auth.rights
    if rights.version_policy == LATEST:
        rights = rights.model_copy(update={"version_policy": ANY})
    seen, _ = permission_filter(rights, collection_id, with_damaged=with_damaged, table="n")

    def family(name: str) -> str:
        return f"{FAMILY}({_bytes(name, 'title')}, {_bytes(name, 'source')})"

    def order(name: str) -> str:
        return f"{ORDER}({_bytes(name, 'version')})"

    return (
        f"({table}.version = '' OR ({family(table)}, {order(table)}) IN (SELECT {family('n')},"
        f" max({order('n')}) FROM documents n WHERE n.version <> '' AND {seen} GROUP BY 1))"
    )


def _bytes(table: str, column: str) -> str:
    """Return a column as SQL hands it to a function: a damaged text may be none."""
    return f"CAST({table}.{column} AS BLOB)"


def _bind(parameters: Parameters, prefix: str, values: Sequence[str]) -> str:
    names = [f"{prefix}{i}" for i in range(len(values))]
    parameters.update(zip(names, values, strict=True))
    return ", ".join(f":{name}" for name in names)


def _any_pattern(parameters: Parameters, prefix: str, patterns: Sequence[str], table: str) -> str:
    if not patterns:
        return "FALSE"  # confined to nothing: fail closed
    names = [f"{prefix}{i}" for i in range(len(patterns))]
    parameters.update(zip(names, patterns, strict=True))
    tests = [_match(name, pattern, table) for name, pattern in zip(names, patterns, strict=True)]
    while len(tests) > 1:  # in groups, since SQLite limits the depth of an expression
        groups = [tests[start : start + GROUP] for start in range(0, len(tests), GROUP)]
        tests = [f"({' OR '.join(group)})" for group in groups]
    return tests[0]


def _match(name: str, pattern: str, table: str) -> str:
    """Use SQLite's own GLOB where it means the same: its sets are negated by ^, a shell's by !."""
    if "[" in pattern or "\x00" in pattern:
        return f"{MATCHES}({table}.source, :{name})"
    return f"{table}.source GLOB :{name}"


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


# Of the mark that makes a name another one: short enough to read, and a keyed hash, so that nobody
# else can compute it; a mark that is taken already gets another number.
MARK_BYTES = 4


@dataclass(frozen=True)
class WriteAccess:
    """Decide what a writer may replace or remove, and under which names they write.

    Without `auth` it is the operator, who may change all of a tenant. Anybody else may change what
    they may see, be it damaged or not, and what was made of `upload`, the real path of the file
    that is being ingested, or of the folder of a source: its readers may be others.
    """

    auth: AuthContext | None = None
    upload: str = ""
    marked: dict[str, str] = field(default_factory=dict, repr=False)  # names chosen so far

    def check_document(
        self, connection: sqlite3.Connection, collection_id: int, row_id: int
    ) -> None:
        """Raise InUseError for a document that the writer may not change."""
        if self.auth is None:
            return
        allowed, parameters = self._allowed(self.auth, collection_id)
        query = f"SELECT 1 FROM documents d WHERE d.id = :row AND {allowed}"
        if connection.execute(query, {**parameters, "row": row_id}).fetchone() is None:
            raise _refused()

    def check_file(self, connection: sqlite3.Connection, collection_id: int, name: str) -> None:
        """Raise InUseError for a file with a document that the writer may not change."""
        if not self.may_change_file(connection, collection_id, name):
            raise _refused()

    def may_change_file(
        self, connection: sqlite3.Connection, collection_id: int, name: str
    ) -> bool:
        """Tell whether the writer may change all documents of a file."""
        if self.auth is None or self._made(connection, collection_id, [name]):
            return True
        allowed, parameters = self._allowed(self.auth, collection_id)
        query = f"""SELECT 1 FROM documents d WHERE d.collection_id = :p_collection
            AND d.file = :name AND NOT {allowed} LIMIT 1"""
        return connection.execute(query, {**parameters, "name": name}).fetchone() is None

    def file_name(self, connection: sqlite3.Connection, collection_id: int, name: str) -> str:
        """Return the name under which a file that its writer calls `name` is kept.

        It is that of the file which they know by this name, else the name itself where it is free,
        else one of its own.
        """
        if self.auth is None:
            return name
        others = stored_names(connection, collection_id, "file", name)
        own = not alias_of(connection, collection_id, "file", name)
        known = [name, *others] if own else others
        if made := self._made(connection, collection_id, known):
            return made
        filled = [one for one in known if _documents(connection, collection_id, one)]
        for one in filled:
            if self.may_change_file(connection, collection_id, one):
                return one
        if own and name not in filled and not _is_there(connection, collection_id, name):
            return name
        free = next((one for one in others if one not in filled), "")
        return free or self._marked(connection, collection_id, self.auth, name)

    def document_id(
        self, connection: sqlite3.Connection, collection_id: int, file: str, name: str
    ) -> str:
        """Return the id under which a document of a file, which calls it `name`, is kept.

        It is chosen like the name of a file; of several, the one that comes from this file.
        """
        if self.auth is None:
            return name
        allowed, parameters = self._allowed(self.auth, collection_id)
        names = [name, *stored_names(connection, collection_id, "document", name)]
        rows = connection.execute(
            f"""SELECT d.document_id, {allowed} AS allowed FROM documents d
                WHERE d.collection_id = :p_collection
                AND d.document_id IN (SELECT value FROM json_each(:names))
                ORDER BY d.file = :file DESC, d.document_id <> :name, d.document_id""",
            {**parameters, "names": json.dumps(names), "file": file, "name": name},
        ).fetchall()
        taken = bool(alias_of(connection, collection_id, "document", name))
        for row in rows:
            if row["allowed"] and not (taken and row["document_id"] == name):
                return str(row["document_id"])
        if not any(row["document_id"] == name for row in rows):
            return name
        return self._marked(connection, collection_id, self.auth, name)

    def _allowed(self, auth: AuthContext, collection_id: int) -> tuple[str, Parameters]:
        condition, parameters = permission_filter(auth, collection_id, with_damaged=True)
        if not self.upload:
            return f"({condition})", parameters
        made = """d.collection_id = :p_collection AND EXISTS (SELECT 1 FROM files f
            WHERE f.collection_id = d.collection_id AND f.relative = d.file AND
            (f.path = :upload OR substr(f.path, 1, length(:upload) + 1) = :upload || '/'))"""
        return f"(({condition}) OR ({made}))", {**parameters, "upload": self.upload}

    def _made(self, connection: sqlite3.Connection, collection_id: int, names: list[str]) -> str:
        """Return which of these files the upload has made, "" for none."""
        if not self.upload:
            return ""
        row = connection.execute(
            """SELECT relative FROM files WHERE collection_id = :c
               AND (path = :upload OR substr(path, 1, length(:upload) + 1) = :upload || '/')
               AND relative IN (SELECT value FROM json_each(:names))""",
            {"c": collection_id, "upload": self.upload, "names": json.dumps(names)},
        ).fetchone()
        return row[0] if row else ""

    def _marked(
        self, connection: sqlite3.Connection, collection_id: int, auth: AuthContext, name: str
    ) -> str:
        """Return another name: the same one in one ingest, and in the next when it is free again.

        Else ids that follow from it would change with every upload, but those of a free name not.
        """
        if name not in self.marked:
            secret = connection.execute(f"SELECT {SECRET}").fetchone()[0].encode()
            for number in count():
                of = json.dumps([auth.tenant, auth.user, name, number])
                mark = blake2b(of.encode(), key=secret, digest_size=MARK_BYTES).hexdigest()
                if not _is_taken(connection, collection_id, f"{name} ({mark})"):
                    break
            self.marked[name] = f"{name} ({mark})"
        return self.marked[name]


OPERATOR = WriteAccess()


def _documents(connection: sqlite3.Connection, collection_id: int, file: str) -> bool:
    query = "SELECT 1 FROM documents WHERE collection_id = ? AND file = ? LIMIT 1"
    return connection.execute(query, (collection_id, file)).fetchone() is not None


def _is_taken(connection: sqlite3.Connection, collection_id: int, name: str) -> bool:
    query = """SELECT EXISTS (SELECT 1 FROM documents
            WHERE collection_id = :c AND (document_id = :name OR file = :name))
        OR EXISTS (SELECT 1 FROM files WHERE collection_id = :c AND relative = :name)"""
    given = {"c": collection_id, "name": name}
    return bool(connection.execute(query, given).fetchone()[0])


def _is_there(connection: sqlite3.Connection, collection_id: int, file: str) -> bool:
    """Tell whether a file without documents is on the disk, where the operator has it."""
    query = "SELECT path FROM files WHERE collection_id = ? AND relative = ?"
    row = connection.execute(query, (collection_id, file)).fetchone()
    return row is not None and Path(row[0]).exists()


def _refused() -> InUseError:
    # Names are chosen so that this is not met; it says nothing of what is there.
    return InUseError("the collection was changed meanwhile", hint="send it again")
