"""Read and change the catalogue of an open store behind its back."""

from __future__ import annotations

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
