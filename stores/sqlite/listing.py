"""Lists of what a caller may see: collections and documents."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from core.auth import AuthContext
from core.errors import CallerError
from core.metadata import GENERAL, Filter
from stores.sqlite import sums
from stores.sqlite.catalogue import Collection, VisiblePassages
from stores.sqlite.permissions import IS_ROW, is_shown_as, permission_filter, shown_id

COLUMNS = """d.source, d.title, d.format, d.language, d.version, d.updated_at, d.indexed_at,
    d.is_record, (SELECT count(*) FROM chunks c WHERE c.document = d.id) AS chunks"""


ALL = -1  # SQLite's own word for no limit
LISTED = 60  # fields in a hint: some five lines of a terminal; chosen, not measured

# A damaged text may be no JSON.
_KEYS = """FROM documents d
    CROSS JOIN json_each(CASE WHEN json_valid(d.metadata) THEN d.metadata ELSE '{}' END) j"""

_NAMED = "(lower(j.key) = :name OR j.key = :field)"  # SQLite's lower knows ASCII alone


class DocumentName(NamedTuple):
    """Hold what a document is called; `row` is its row id, `first` the id of its first chunk."""

    row: int
    title: str
    source: str
    format: str
    version: str
    first: str


class Listing(VisiblePassages):
    """Count and list documents, always under a caller's permissions."""

    def count_documents(self, auth: AuthContext, collection: Collection) -> int:
        condition, parameters = permission_filter(auth, collection.id)
        query = f"SELECT count(*) FROM documents d WHERE {condition}"
        return int(self._value(query, parameters))

    def list_collections(self, auth: AuthContext) -> list[dict[str, Any]]:
        found = self.collections(auth.tenant)
        counts = {one.name: self.count_documents(auth, one) for one in found}
        return [
            {"name": one.name, "profile": one.profile.name, "documents": counts[one.name]}
            for one in found
            if counts[one.name]
        ]

    def list_documents(
        self, auth: AuthContext, collection: Collection, *, after: str = "", limit: int = ALL
    ) -> list[dict[str, Any]]:
        condition, parameters = permission_filter(auth, collection.id)
        shown = shown_id(self._database.read(), auth, collection.id)
        rows = self._all(
            f"""SELECT {shown} AS document_id, {COLUMNS}
                FROM documents d WHERE {condition} AND {shown} > :after
                ORDER BY {shown} LIMIT :limit""",
            {**parameters, "after": after, "limit": limit},
        )
        return [_document(row) for row in rows]

    def measure_collection(self, auth: AuthContext, collection: Collection) -> tuple[int, str]:
        condition, parameters = permission_filter(auth, collection.id)
        query = f"""SELECT sum((SELECT count(*) FROM chunks c WHERE c.document = d.id)),
            max(d.indexed_at) FROM documents d WHERE {condition}"""
        chunks, last = self._one(query, parameters)
        return chunks or 0, last or ""

    def describe_document(
        self, auth: AuthContext, collection: Collection, document_id: str
    ) -> dict[str, Any] | None:
        condition, parameters = permission_filter(auth, collection.id)
        shown = shown_id(self._database.read(), auth, collection.id)
        row = self._one(
            f"""SELECT {shown} AS document_id, {COLUMNS}
                FROM documents d WHERE {condition} AND {is_shown_as(shown, ":id")}""",
            {**parameters, "id": document_id},
        )
        return _document(row) if row else None

    def file_of(
        self, auth: AuthContext, collection: Collection, document_id: str
    ) -> tuple[str, str] | None:
        condition, parameters = permission_filter(auth, collection.id)
        shown = shown_id(self._database.read(), auth, collection.id)
        row = self._one(
            f"""SELECT f.path, d.indexed_at FROM documents d CROSS JOIN files f
                ON f.collection_id = d.collection_id AND f.relative = d.file
                WHERE {condition} AND {is_shown_as(shown, ":id")} AND f.sum IS {sums.FILE}""",
            {**parameters, "id": document_id},
        )
        return (row["path"], row["indexed_at"]) if row else None

    def list_passages(
        self, auth: AuthContext, collection: Collection, document_id: str, first: int, last: int
    ) -> list[dict[str, Any]]:
        condition, parameters = permission_filter(auth, collection.id)
        shown = shown_id(self._database.read(), auth, collection.id)
        rows = self._all(
            f"""{sums.compared_once(f"{condition} AND {is_shown_as(shown, ':id')}")}
                SELECT c.chunk_id, c.ordinal, c.kind, c.section, c.page, c.text
                FROM d CROSS JOIN chunks c ON c.document = d.id
                WHERE {sums.SOUND_CHUNK} AND c.ordinal BETWEEN :first AND :last
                ORDER BY c.ordinal""",
            {**parameters, "id": document_id, "first": first, "last": last},
        )
        return [dict(row) for row in rows]

    def visible_passages(self, auth: AuthContext, collection: Collection) -> Iterator[sqlite3.Row]:
        condition, parameters = permission_filter(auth, collection.id, sums=False)
        return self._database.read().execute(
            f"""{sums.compared_once(condition)}
                SELECT c.document, d.title, d.format, d.language, d.is_record, d.metadata, c.kind,
                    c.section, c.text FROM d CROSS JOIN chunks c ON c.document = d.id
                WHERE {sums.SOUND_CHUNK} ORDER BY c.document, c.ordinal""",
            parameters,
        )

    def document_names(self, auth: AuthContext, collection_id: int) -> list[DocumentName]:
        condition, parameters = permission_filter(auth, collection_id)
        rows = self._all(
            f"""SELECT d.id, d.title, d.source, d.format, d.version, c.chunk_id FROM documents d
                JOIN chunks c ON c.document = d.id AND c.ordinal = 0
                WHERE {condition} AND NOT {IS_ROW} ORDER BY d.source, d.id""",
            parameters,
        )
        return [DocumentName(*row) for row in rows]

    def chunk_ids(self, documents: Sequence[int]) -> list[str]:
        found: list[str] = []
        query = "SELECT chunk_id, kind FROM chunks WHERE document = ? ORDER BY ordinal"
        for document in documents:
            rows = self._all(query, (document,))
            kinds = ("annotation",) if any(kind == "annotation" for _, kind in rows) else ("text",)
            found += [key for key, kind in rows if kind in kinds] or [key for key, _ in rows]
        return found

    def sections(self, documents: Sequence[int]) -> list[tuple[int, str, str]]:
        query = "SELECT document, chunk_id, section FROM chunks WHERE document = ? ORDER BY ordinal"
        return [tuple(row) for one in documents for row in self._all(query, (one,))]

    def check_fields(
        self, auth: AuthContext, collections: Sequence[Collection], where: Sequence[Filter]
    ) -> None:
        names = {one.name: one.field for one in where if one.of_metadata}
        reader, known = self._database.read(), set[str]()
        for collection in collections if names else ():
            condition, parameters = permission_filter(auth.rights, collection.id)
            for name in names.keys() - known:
                query = f"SELECT 1 {_KEYS} WHERE {_NAMED} AND {condition} LIMIT 1"
                given = {**parameters, "name": name, "field": names[name]}
                if reader.execute(query, given).fetchone():
                    known.add(name)
        if not (unknown := names.keys() - known):
            return
        there = set(GENERAL)
        for collection in collections:
            condition, parameters = permission_filter(auth.rights, collection.id)
            query = f"SELECT DISTINCT lower(j.key) {_KEYS} WHERE {condition}"
            there |= {row[0] for row in reader.execute(query, parameters)}
        listed = sorted(there)
        more = f" and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
        raise CallerError(
            "no document here has the field that a filter names",
            value=names[min(unknown)],
            hint=f"fields: {', '.join(listed[:LISTED])}{more}",
        )


def _document(row: sqlite3.Row) -> dict[str, Any]:
    return {**dict(row), "is_record": bool(row["is_record"])}
