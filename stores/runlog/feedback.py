"""What readers thought of their runs."""

from __future__ import annotations

import datetime
import json
import sqlite3
from collections.abc import Iterator
from typing import Any, Literal

from core.auth import AuthContext
from stores.runlog.history import KEPT, Closed, closed_runs, kept
from stores.sqlite.database import Database
from stores.sqlite.sums import OPINION, RUN, sign

Rating = Literal["up", "down"]
PAGE = 500
OWN = ("id", "access")  # columns that are not exported


class FeedbackNotes:
    """Keep one opinion for each run and user; a later one replaces it."""

    def __init__(self, database: Database) -> None:
        """Use the catalogue's file."""
        self._database = database

    def save_feedback(
        self, tenant: str, user: str, run_id: str, rating: Rating, comment: str
    ) -> None:
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

    def export_feedback(
        self, auth: AuthContext, *, everyone: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Yield the opinions of a caller, or of the whole tenant, with their questions.

        What others asked is their own: a tenant's export holds question, answer and rating, never
        the evidence, and of an answer what the caller who exports it may see now.
        """
        last = 0
        while rows := self._page(auth.tenant, None if everyone else auth.user, last):
            last = rows[-1]["id"]
            runs = [kept(row) for row in rows if row["question"] is not None]
            closed = closed_runs(self._database.read(), auth, runs)
            for row in rows:
                found = {name: row[name] for name in row.keys() if name not in OWN}  # noqa: SIM118
                if row["run_id"] in closed:
                    found["answer"] = self._open_answer(row["run_id"], closed[row["run_id"]])
                yield found

    def _open_answer(self, run_id: str, closed: Closed) -> str:
        row = (
            self._database.read()
            .execute("SELECT result FROM runs WHERE run_id = ?", (run_id,))
            .fetchone()
        )
        return closed.answer(json.loads(row["result"]))

    def _page(self, tenant: str, user: str | None, after: int) -> list[sqlite3.Row]:
        return (
            self._database.read()
            .execute(
                f"""SELECT n.id, n.run_id, n.user, n.rating, n.comment, n.created_at, r.question,
                       {KEPT}, json_extract(r.result, '$.answer') AS answer
                   FROM feedback n LEFT JOIN runs r ON r.run_id = n.run_id
                       AND r.tenant = n.tenant AND r.user = n.user AND r.sum IS {RUN}
                   WHERE n.tenant = :tenant AND (:user IS NULL OR n.user = :user)
                       AND n.id > :after AND n.sum IS {OPINION} ORDER BY n.id LIMIT :page""",
                {"tenant": tenant, "user": user, "after": after, "page": PAGE},
            )
            .fetchall()
        )
