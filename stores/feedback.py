"""What readers thought of their runs."""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Iterator
from typing import Any, Literal

from stores.database import Database
from stores.sums_records import OPINION, RUN, sign

Rating = Literal["up", "down"]
PAGE = 500


class FeedbackNotes:
    """Keep one opinion for each run and user; a later one replaces it."""

    def __init__(self, database: Database) -> None:
        """Use the catalogue's file."""
        self._database = database

    def save(self, tenant: str, user: str, run_id: str, rating: Rating, comment: str) -> None:
        """Keep an opinion on a run, which the caller has checked to be the user's own."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        with self._database.write() as connection:
            connection.execute(
                """INSERT INTO feedback (run_id, tenant, user, rating, comment, created_at)
                   VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (run_id, tenant, user) DO UPDATE
                   SET rating = excluded.rating, comment = excluded.comment,
                       created_at = excluded.created_at""",
                (run_id, tenant, user, rating, comment, now),
            )
            sign(
                connection,
                "feedback",
                "(n.run_id, n.tenant, n.user) = (?, ?, ?)",
                run_id,
                tenant,
                user,
            )

    def exported(self, tenant: str, user: str | None) -> Iterator[dict[str, Any]]:
        """Yield the opinions of one user, or with None of the whole tenant, with their questions.

        What others asked is their own: a tenant's export holds question, answer and rating, never
        the evidence.
        """
        last = 0
        while rows := self._page(tenant, user, last):
            last = rows[-1]["id"]
            for row in rows:
                yield {name: row[name] for name in row.keys() if name != "id"}  # noqa: SIM118

    def _page(self, tenant: str, user: str | None, after: int) -> list[sqlite3.Row]:
        return (
            self._database.read()
            .execute(
                f"""SELECT n.id, n.run_id, n.user, n.rating, n.comment, n.created_at, r.question,
                       r.collection, json_extract(r.result, '$.answer') AS answer
                   FROM feedback n LEFT JOIN runs r ON r.run_id = n.run_id
                       AND r.tenant = n.tenant AND r.user = n.user AND r.sum IS {RUN}
                   WHERE n.tenant = :tenant AND (:user IS NULL OR n.user = :user)
                       AND n.id > :after AND n.sum IS {OPINION} ORDER BY n.id LIMIT :page""",
                {"tenant": tenant, "user": user, "after": after, "page": PAGE},
            )
            .fetchall()
        )
