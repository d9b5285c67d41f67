"""Documents that a user likes or dislikes: opinions beside those on runs, in the same table."""

from __future__ import annotations

from typing import NamedTuple

from core.auth import AuthContext
from core.errors import AbsentError
from stores.runlog.runs import FeedbackNotes, Rating
from stores.sqlite.permissions import is_shown_as, permission_filter, shown_id
from stores.sqlite.sums import OPINION

# In front of the key of a document, where opinions on runs have the id of one.
PREFIX = "document:"


class DocumentRating(NamedTuple):
    """Hold what a user thinks of a document; `passage` is the id of its first text."""

    key: str
    document_id: str
    title: str
    rating: Rating
    created_at: str
    passage: str

    def describe(self) -> dict[str, str]:
        """Return it as its user exports it."""
        return {name: str(getattr(self, name)) for name in self._fields[1:5]}


class Ratings(FeedbackNotes):
    """Keep one opinion for each user and document; a later one replaces it."""

    def rate_document(
        self, auth: AuthContext, collection_id: int, document_id: str, rating: Rating
    ) -> None:
        condition, parameters = permission_filter(auth, collection_id)
        shown = shown_id(self._database.read(), auth, collection_id)
        row = self._one(
            f"SELECT d.key FROM documents d WHERE {condition} AND {is_shown_as(shown, ':id')}",
            {**parameters, "id": document_id},
        )
        if row is None:
            raise AbsentError("there is no such document in this collection", value=document_id)
        self.save_feedback(auth.tenant, auth.user, f"{PREFIX}{row['key']}", rating, "")

    def list_ratings(
        self, auth: AuthContext, collection_id: int, most: int = -1
    ) -> list[DocumentRating]:
        condition, parameters = permission_filter(auth.rights, collection_id)
        shown = shown_id(self._database.read(), auth, collection_id)
        rows = self._all(
            f"""SELECT d.key, {shown} AS document_id, d.title, n.rating, n.created_at,
                    (SELECT c.chunk_id FROM chunks c WHERE c.document = d.id
                     ORDER BY c.kind = 'record', c.ordinal LIMIT 1) AS passage
                FROM feedback n CROSS JOIN documents d ON n.run_id = '{PREFIX}' || d.key
                WHERE n.tenant = :own_tenant AND n.user = :own_user AND n.sum IS {OPINION}
                    AND {condition}
                ORDER BY n.created_at DESC, n.id DESC LIMIT :most""",
            {**parameters, "own_tenant": auth.tenant, "own_user": auth.user, "most": most},
        )
        return [DocumentRating(*row) for row in rows if row["passage"] is not None]

    def delete_ratings(self, auth: AuthContext) -> int:
        with self._database.write() as connection:
            return connection.execute(
                f"""DELETE FROM feedback WHERE tenant = ? AND user = ?
                    AND substr(run_id, 1, {len(PREFIX)}) = '{PREFIX}'""",
                (auth.tenant, auth.user),
            ).rowcount
