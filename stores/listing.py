"""Lists of what a caller may see: collections and documents."""

from __future__ import annotations

from typing import Any

from core.auth import AuthContext
from stores import sums
from stores.aliases import is_shown_as, shown_id
from stores.catalogue import Collection
from stores.database import Database
from stores.permissions import permission_filter

COLUMNS = """d.source, d.title, d.format, d.language, d.version, d.updated_at, d.indexed_at,
    d.is_record, (SELECT count(*) FROM chunks c WHERE c.document = d.id) AS chunks"""


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
        shown = shown_id(self._database.read(), auth, collection.id)
        rows = self._database.read().execute(
            f"""SELECT {shown} AS document_id, {COLUMNS}
                FROM documents d WHERE {condition} AND {shown} > :after
                ORDER BY {shown} LIMIT :limit""",
            {**parameters, "after": after, "limit": limit},
        )
        return [{**dict(row), "is_record": bool(row["is_record"])} for row in rows]

    def document(
        self, auth: AuthContext, collection: Collection, document_id: str
    ) -> dict[str, Any] | None:
        """Return one document the caller may see, None where there is no such one."""
        condition, parameters = permission_filter(auth, collection.id)
        shown = shown_id(self._database.read(), auth, collection.id)
        row = (
            self._database.read()
            .execute(
                f"""SELECT {shown} AS document_id, {COLUMNS}
                    FROM documents d WHERE {condition} AND {is_shown_as(shown, ":id")}""",
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
        shown = shown_id(self._database.read(), auth, collection.id)
        rows = self._database.read().execute(
            f"""{sums.compared_once(f"{condition} AND {is_shown_as(shown, ':id')}")}
                SELECT c.chunk_id, c.ordinal, c.kind, c.section, c.page, c.text
                FROM d CROSS JOIN chunks c ON c.document = d.id
                WHERE {sums.SOUND_CHUNK} AND c.ordinal BETWEEN :first AND :last
                ORDER BY c.ordinal""",
            {**parameters, "id": document_id, "first": first, "last": last},
        )
        return [dict(row) for row in rows]
