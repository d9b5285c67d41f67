"""What erasures still have to be finished: written with the truth, gone when all is tidied."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from stores.sqlite.database import Database


@dataclass(frozen=True)
class Pending:
    """Say what is left: which rows, of which collections, since when, of how many documents."""

    rows: tuple[int, ...]
    collections: frozenset[int]
    documents: int
    since: str

    @property
    def problem(self) -> str:
        """Return the message to the operator."""
        return (
            f"an erasure is not finished (since {self.since}, {self.documents} documents): their"
            " text may still lie in derived files; run `carrel forget`, which finishes it"
        )


def note(connection: sqlite3.Connection, collections: Iterable[int], documents: int) -> None:
    """Note an erasure within the transaction that changes the truth; without one, collection 0."""
    for number, collection_id in enumerate(list(collections) or [0]):
        connection.execute(
            "INSERT INTO erasures (collection_id, documents, at) VALUES (?, ?, datetime('now'))",
            (collection_id, 0 if number else documents),
        )


def pending(database: Database) -> Pending | None:
    """Return what is left to be finished, None for nothing."""
    rows = database.read().execute("SELECT * FROM erasures ORDER BY id").fetchall()
    if not rows:
        return None
    return Pending(
        rows=tuple(row["id"] for row in rows),
        collections=frozenset(row["collection_id"] for row in rows),
        documents=sum(row["documents"] for row in rows),
        since=rows[0]["at"],
    )


def finish(database: Database, done: Pending) -> None:
    """Note that these are finished."""
    with database.write() as connection:
        connection.executemany("DELETE FROM erasures WHERE id = ?", [(row,) for row in done.rows])


def leftovers(database: Database, kind: str) -> list[str]:
    """Return the ids of threads, or of uploads, that are still to be deleted."""
    rows = database.read().execute("SELECT name FROM erasure_leftovers WHERE kind = ?", (kind,))
    return [row[0] for row in rows]


def deleted(database: Database, kind: str, names: Iterable[str]) -> None:
    """Note that these are deleted."""
    with database.write() as connection:
        connection.executemany(
            "DELETE FROM erasure_leftovers WHERE kind = ? AND name = ?",
            [(kind, name) for name in names],
        )
