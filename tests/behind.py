"""Read and change the catalogue of an open store behind its back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from stores.store import Store, parts


def rows(store: Store, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    return [tuple(row) for row in parts(store).database.read().execute(sql, values)]


def value(store: Store, sql: str, *values: object) -> Any:  # noqa: ANN401 - of any column
    """Return the first value of the first row."""
    return rows(store, sql, *values)[0][0]


def count(store: Store, table: str) -> int:
    """Count the rows of a table."""
    return int(value(store, f"SELECT count(*) FROM {table}"))


def change(store: Store, *statements: str) -> None:
    """Run statements in one transaction of the store's own writer."""
    with parts(store).database.write() as connection:
        for statement in statements:
            connection.execute(statement)


def indexed(store: Store, collection_id: int) -> int:
    """Count the rows of a collection's full text."""
    return count(store, f"fts_{collection_id}")


def full_text_hits(
    store: Store, collection_id: int, query: Sequence[Collection[str]], limit: int
) -> list[tuple[str, float]]:
    """Return (chunk id, BM25 score) pairs of the full text, best first."""
    own = parts(store)
    scores = own.fulltext.scores(own.database.read(), collection_id, query)
    ids: dict[int, str] = dict(rows(store, "SELECT id, chunk_id FROM chunks"))
    pairs = [(ids[row], score) for row, score in scores]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:limit]
