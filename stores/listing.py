"""Lists of what a caller may see: collections and documents."""

from __future__ import annotations

from typing import Any

from core.auth import AuthContext
from stores import sums
from stores.catalogue import Collection
from stores.database import Database
from stores.permissions import permission_filter

COLUMNS = "document_id, source, title, format, language, version, updated_at, indexed_at, is_record"


class Listing:
    """Count and list documents, always under a caller's permissions."""

    def __init__(self, database: Database) -> None:
        """Read from `database`."""
        self._database = database

    def count(self, auth: AuthContext, collection: Collection) -> int:
        """Return how many documents of a collection the caller may see."""
        condition, parameters = permission_filter(auth, collection.id)
        query = f"SELECT count(*) FROM documents d WHERE {condition}"
        return int(self._database.read().execute(query, parameters).fetchone()[0])

    def documents(
        self, auth: AuthContext, collection: Collection, *, after: str, limit: int
    ) -> list[dict[str, Any]]:
        """List up to `limit` documents the caller may see whose id comes after `after`."""
        condition, parameters = permission_filter(auth, collection.id)
        columns = ", ".join(f"d.{name.strip()}" for name in COLUMNS.split(","))
        rows = self._database.read().execute(
            f"""SELECT {columns},
                    (SELECT count(*) FROM chunks c WHERE c.document = d.id) AS chunks
                FROM documents d WHERE {condition} AND d.document_id > :after
                ORDER BY d.document_id LIMIT :limit""",
            {**parameters, "after": after, "limit": limit},
        )
        return [{**dict(row), "is_record": bool(row["is_record"])} for row in rows]

    def document(
        self, auth: AuthContext, collection: Collection, document_id: str
    ) -> dict[str, Any] | None:
        """Return one document the caller may see, None where there is no such one."""
        condition, parameters = permission_filter(auth, collection.id)
        columns = ", ".join(f"d.{name.strip()}" for name in COLUMNS.split(","))
        row = (
            self._database.read()
            .execute(
                f"""SELECT {columns},
                        (SELECT count(*) FROM chunks c WHERE c.document = d.id) AS chunks
                    FROM documents d WHERE {condition} AND d.document_id = :id""",
                {**parameters, "id": document_id},
            )
            .fetchone()
        )
        return {**dict(row), "is_record": bool(row["is_record"])} if row else None

    def passages(
        self, auth: AuthContext, collection: Collection, document_id: str, first: int, last: int
    ) -> list[dict[str, Any]]:
        """List the chunks `first` to `last` of a document the caller may see, in reading order."""
        condition, parameters = permission_filter(auth, collection.id)
        rows = self._database.read().execute(
            f"""SELECT c.chunk_id, c.ordinal, c.kind, c.section, c.page, c.text
                FROM documents d CROSS JOIN chunks c ON c.document = d.id
                WHERE {condition} AND d.document_id = :id AND {sums.SOUND_CHUNK}
                    AND c.ordinal BETWEEN :first AND :last
                ORDER BY c.ordinal""",
            {**parameters, "id": document_id, "first": first, "last": last},
        )
        return [dict(row) for row in rows]
