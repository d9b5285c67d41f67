"""Who may read the documents of a file, changed in place: no text is read or embedded again.

All documents of a file have one list, since each is searched with words of its neighbours there.
A list that was set is noted for its file: what a later ingest reads of it gets the list as well.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection as AbstractCollection
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.auth import AuthContext
from core.errors import AbsentError, CallerError, OperatorError
from stores.accounts.audit import AuditEntry, AuditLog
from stores.sqlite.catalogue import Collection
from stores.sqlite.database import CataloguePart
from stores.sqlite.permissions import (
    OPERATOR,
    WriteAccess,
    is_called,
    is_shown_as,
    permission_filter,
    shown_id,
)
from stores.sqlite.sums import DOCUMENT, sign
from stores.sqlite.writer import bump, default_list, note_default, note_list

# What was remembered of the fields that a caller may see stands under this number.
CHANGED = """INSERT INTO meta VALUES ('acl_changes', '1')
    ON CONFLICT (key) DO UPDATE SET value = CAST(meta.value AS INTEGER) + 1"""
OF_FILE = "d.collection_id = :collection AND d.file = :file"


@dataclass(frozen=True)
class AccessList:
    """Hold who may read the documents of one file; `acl` is empty for the whole tenant."""

    source: str
    collection: Collection
    file: str
    acl: list[str]
    documents: int
    chunks: int

    def describe(self) -> dict[str, object]:
        """Return what is printed of it."""
        rest = {"acl": self.acl, "documents": self.documents, "chunks": self.chunks}
        return {"source": self.source, "collection": self.collection.name, **rest}


class AccessLists(CataloguePart):
    """Find and replace access lists."""

    def find_access(
        self, collections: Sequence[Collection], source: str, access: WriteAccess = OPERATOR
    ) -> AccessList:
        return _find(self._database.read(), collections, source, access)

    def set_access(
        self,
        collections: Sequence[Collection],
        source: str,
        acl: AbstractCollection[str],
        *,
        by: AuthContext,
        access: WriteAccess = OPERATOR,
        log: AuditLog | None = None,
    ) -> tuple[AccessList, list[str]]:
        found: list[AccessList] = []

        def change(connection: sqlite3.Connection) -> Sequence[AuditEntry]:
            one = _find(connection, collections, source, access)
            access.check_file(connection, one.collection.id, one.file)
            _replace(connection, one, sorted(acl))
            found.append(one)
            facts = {"collection": one.collection.name, "before": one.acl, "readers": sorted(acl)}
            named = log.document(one.source) if log is not None else {}
            return [AuditEntry("access_changed", by, {**facts, **named})]

        if log is None:
            with self._database.write() as connection:
                change(connection)
        else:
            log.append([], change)
        return replace(found[0], acl=sorted(acl)), found[0].acl

    def set_all_access(
        self,
        collection: Collection,
        acl: AbstractCollection[str],
        *,
        by: AuthContext,
        access: WriteAccess = OPERATOR,
        log: AuditLog | None = None,
    ) -> AccessList:
        done: list[AccessList] = []

        def change(connection: sqlite3.Connection) -> Sequence[AuditEntry]:
            for file in _seen_files(connection, collection, access):
                if access.may_change_file(connection, collection.id, file):
                    one = _of_file(connection, collection, file, file)
                    _replace(connection, one, sorted(acl))
                    done.append(one)
            facts = {"collection": collection.name, "files": len(done), "readers": sorted(acl)}
            return [AuditEntry("access_changed", by, facts)]

        if log is None:
            with self._database.write() as connection:
                change(connection)
        else:
            log.append([], change)
        counts = sum(one.documents for one in done), sum(one.chunks for one in done)
        return AccessList("all documents", collection, "", sorted(acl), *counts)

    def default_access(self, collection: Collection) -> list[str]:
        return sorted(default_list(self._database.read(), collection.id))

    def set_default_access(
        self,
        collection: Collection,
        acl: AbstractCollection[str],
        *,
        by: AuthContext,
        log: AuditLog | None = None,
    ) -> list[str]:
        before = self.default_access(collection)

        def change(connection: sqlite3.Connection) -> Sequence[AuditEntry]:
            note_default(connection, collection.id, sorted(acl))
            facts = {"collection": collection.name, "before": before, "readers": sorted(acl)}
            return [AuditEntry("access_changed", by, {**facts, "of": "later documents"})]

        if log is None:
            with self._database.write() as connection:
                change(connection)
        else:
            log.append([], change)
        return before


def _seen_files(
    connection: sqlite3.Connection, collection: Collection, access: WriteAccess
) -> list[str]:
    visible, given = "1", dict[str, object]()
    if access.auth is not None:
        visible, given = permission_filter(access.auth, collection.id)
    rows = connection.execute(
        f"""SELECT DISTINCT d.file FROM documents d
            WHERE d.collection_id = :collection AND {visible}""",
        {**given, "collection": collection.id},
    )
    return [row[0] for row in rows]


def _find(
    connection: sqlite3.Connection,
    collections: Sequence[Collection],
    source: str,
    access: WriteAccess,
) -> AccessList:
    """Return the list of the one file that a source, or an id, names."""
    found = [(o, file) for o in collections for file in _files(connection, o, source, access)]
    if not found:
        rule, hint = "there is no document of this source", "`carrel documents` lists them"
        raise AbsentError(rule, value=source, hint=hint)
    if len(names := {one.name for one, _ in found}) > 1:
        rule = f"documents of this source are in {len(names)} collections"
        rule += f" ({', '.join(sorted(names))})"
        raise CallerError(rule, value=source, hint="name one of them with -c")
    if len(found) > 1:
        rule = f"documents of this source come from {len(found)} files"
        raise CallerError(rule, value=source, hint="give the id of one instead")
    return _of_file(connection, *found[0], source)


def _of_file(
    connection: sqlite3.Connection, collection: Collection, file: str, source: str
) -> AccessList:
    """Return the list of a file; raises OperatorError for a damaged one."""
    given = {"collection": collection.id, "file": file}
    damaged, documents, chunks, principals = connection.execute(
        f"""SELECT count(*) FILTER (
                WHERE d.sum IS NOT {DOCUMENT} OR d.id IN (SELECT document FROM quarantine)),
            count(*), coalesce(sum((SELECT count(*) FROM chunks c WHERE c.document = d.id)), 0),
            (SELECT json_group_array(DISTINCT a.principal) FROM documents d
                JOIN document_acl a ON a.document = d.id WHERE {OF_FILE})
            FROM documents d WHERE {OF_FILE}""",
        given,
    ).fetchone()
    if damaged:  # to sign it again would make it sound
        rule, hint = "a document of this file is damaged", "`carrel doctor --repair` says more"
        raise OperatorError(rule, value=source, hint=hint)
    return AccessList(source, collection, file, sorted(json.loads(principals)), documents, chunks)


def _files(
    connection: sqlite3.Connection, collection: Collection, source: str, access: WriteAccess
) -> list[str]:
    visible, given, called = "TRUE", dict[str, object](), is_called(":name")
    if access.auth is not None:
        visible, given = permission_filter(access.auth, collection.id)
        called = is_shown_as(shown_id(connection, access.auth, collection.id), ":name")
    for condition in ("d.source = :name", called, "d.file = :name"):
        rows = connection.execute(
            f"""SELECT DISTINCT d.file FROM documents d
                WHERE d.collection_id = :collection AND {condition} AND {visible}""",
            {**given, "collection": collection.id, "name": source},
        ).fetchall()
        if rows:
            return [row[0] for row in rows]
    return []


def _replace(connection: sqlite3.Connection, found: AccessList, acl: list[str]) -> None:
    """Give the documents of a file another list, within a transaction.

    Their hashes go, so that an ingest which reads the file again writes them all under one list.
    """
    given = {"collection": found.collection.id, "file": found.file, "acl": json.dumps(acl)}
    of_file = f"document IN (SELECT d.id FROM documents d WHERE {OF_FILE})"
    connection.execute(f"DELETE FROM document_acl WHERE {of_file}", given)
    connection.execute(
        f"""INSERT INTO document_acl SELECT d.id, j.value FROM documents d, json_each(:acl) j
            WHERE {OF_FILE}""",
        given,
    )
    is_open = "CASE :acl WHEN '[]' THEN 1 ELSE 0 END"
    changed = f"UPDATE documents AS d SET is_open = {is_open}, content_hash = ''"
    connection.execute(f"{changed} WHERE {OF_FILE}", given)
    of_row = "d.collection_id = ? AND d.file = ?"
    sign(connection, "documents", of_row, found.collection.id, found.file)
    note_list(connection, found.collection.id, found.file, acl)
    connection.execute(CHANGED)
    bump(connection)
