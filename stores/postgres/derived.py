"""What functions of this program say of rows, for statements that would call them in SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.language.analysis import has_words
from core.metadata import document_family, meets_filter, version_order
from stores.postgres.dialect import Derived, glob_pattern
from stores.sqlite.permissions import MEETS
from stores.sqlite.record_conditions import HAS_WORDS, beginnings

if TYPE_CHECKING:
    from stores.postgres.connection import PostgresConnection

REMEMBERED = 64  # answers that a reader keeps, some MB in all; chosen, not measured


def derive(connection: PostgresConnection, one: Derived, given: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return the value of a parameter that is made of others."""
    value = given[one.given]
    if one.kind == "glob":
        return None if value is None else glob_pattern(value)
    if one.kind == "fnmatch":
        return None if value is None else glob_pattern(value, "!")
    key = (one.kind, one.columns, value, given.get("p_collection"))
    version = connection.execute("SELECT value FROM meta WHERE key = 'index_version'").fetchone()[0]
    kept = connection.remembered.get(key)
    if connection.limited and kept is not None and kept[0] == version:
        return kept[1]
    found = {MEETS: _meeting, HAS_WORDS: _with_words}[one.kind](connection, one, given)
    if len(connection.remembered) >= REMEMBERED:
        connection.remembered.clear()
    connection.remembered[key] = version, found
    return found


def _meeting(connection: PostgresConnection, one: Derived, given: dict[str, Any]) -> list[int]:
    """Return the ids of the documents of the collection that pass a filter."""
    rows = connection.execute(
        f"SELECT id, {', '.join(one.columns)} FROM documents"
        " WHERE tenant = :p_tenant AND collection_id = :p_collection",
        {name: given[name] for name in ("p_tenant", "p_collection")},
    )
    text = given[one.given]
    return [row[0] for row in rows if meets_filter(text, *row[1:])]


def _with_words(connection: PostgresConnection, one: Derived, given: dict[str, Any]) -> list[str]:
    """Return the values of the collection's fields that have all words of a text."""
    text = given[one.given]
    wanted = {f"word{n}": word for n, word in enumerate(beginnings(text))}
    tests = "".join(f" AND instr(f.folded, :{name}) > 0" for name in wanted)
    rows = connection.execute(
        "SELECT DISTINCT f.folded FROM record_fields f WHERE f.collection_id = :collection" + tests,
        {"collection": given["p_collection"], **wanted},
    )
    return [row[0] for row in rows if has_words(row[0], text)]


def complete_documents(connection: PostgresConnection, where: str, values: Any) -> None:  # noqa: ANN401
    """Compute of documents what SQLite computes when it asks (`dialect.NOT_CREATED`)."""
    rows = connection.execute(
        f"SELECT d.id, d.title, d.source, d.version FROM documents AS d WHERE {where}", values
    ).fetchall()
    connection.executemany(
        "UPDATE documents SET document_family = ?, version_order = ? WHERE id = ?",
        [(document_family(row[1], row[2]), version_order(row[3]), row[0]) for row in rows],
    )
