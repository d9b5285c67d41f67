"""Queries over record fields: structured in, caged SQL out.

The caller's permissions are part of every statement, the connection is read-only, an authorizer
allows reads of the named tables alone, and what takes too long is ended.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Collection as AbstractCollection
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple

from pydantic import Field

from core.auth import AuthContext
from core.errors import CallerError
from core.filters import Filter
from core.time_limit import TimeLimit, limited_time
from core.types import FieldInfo, Value
from stores.database import Database
from stores.permissions import (
    FAMILY,
    KNOWN,
    MATCHES,
    MEETS,
    ORDER,
    SOUND,
    Parameters,
    permission_filter,
)
from stores.sums import FUNCTION

READABLE = {"documents", "document_acl", "record_fields", "quarantine"}
WINDOWS = {"row_number", "dense_rank", "sum"}
FUNCTIONS = {"count", "min", "max", "glob", "instr", "length", MATCHES} | WINDOWS
FUNCTIONS |= {MEETS, FAMILY, ORDER, "coalesce", KNOWN, SOUND, FUNCTION}  # of sums
LONGEST_NAME = 100  # of a field that a condition can name
EXAMPLES = 200
# Of all fields together, so that neither a description nor choosing by it takes long.
ALL_EXAMPLES = 20_000
LONGEST_EXAMPLE = 300  # no question says more of a value
REMEMBERED = 64  # descriptions of fields, each of one collection as some callers see it


class DescriptionKey(NamedTuple):
    """Name a description: the state of a collection, and all that decides what is seen of it.

    Of a caller's principals only those count that any access list names, so callers who see the
    same share one.
    """

    collection_id: int
    state: tuple[int, ...]
    tenant: str
    principals: frozenset[str]
    allowed: tuple[str, ...] | None
    version: str
    where: tuple[Filter, ...]
    sources: tuple[str, ...]


Operator = Literal["=", "contains", "<", "<=", ">", ">="]


class Condition(Value):
    """Compare one field; `contains` and `=` ignore case, the others (and `=` 7) compare numbers."""

    field: str = Field(min_length=1, max_length=100)
    op: Operator = "contains"
    value: str | float = Field(description="text for = and contains, a number for the others")


class Records:
    """Query the fields of the records a caller may see."""

    def __init__(self, database: Database, *, timeout_s: float, most_fields: int) -> None:
        """Give each query at most `timeout_s` seconds; describe up to `most_fields` fields."""
        self._database = database
        self._timeout_s = timeout_s
        self._most_fields = most_fields
        self._described: dict[DescriptionKey, list[FieldInfo]] = {}
        self._states: dict[int, tuple[int, tuple[int, ...], frozenset[str]]] = {}
        self._lock = threading.Lock()

    def find(
        self,
        auth: AuthContext,
        collection_id: int,
        where: Sequence[Condition],
        *,
        most: bool = False,
        order_by: str | None,
        descending: bool,
        limit: int,
        sources: Sequence[str] = (),
    ) -> tuple[list[int], int]:
        """Return the document row ids that meet every condition, and how many there are in all.

        With `most`, records that meet at least one condition count, those that meet more first.
        """
        visible, parameters = permission_filter(auth, collection_id, sources)
        conditions = [_clause(condition, n, parameters) for n, condition in enumerate(where)]
        joined = (" OR " if most else " AND ").join(conditions)
        clauses = [visible, "d.is_record = 1", *([f"({joined})"] if conditions else [])]
        body = f"FROM documents d WHERE {' AND '.join(clauses)}"
        order = "d.id"
        if order_by is not None:
            parameters["order_field"] = order_by
            best = "max" if descending else "min"
            field = "FROM record_fields o WHERE o.document = d.id AND o.name = :order_field"
            way = "DESC" if descending else "ASC"
            order = (
                f"(SELECT {best}(o.number) {field}) {way},"
                f" (SELECT {best}(o.folded) {field}) {way}, d.id"
            )
        if most and len(conditions) > 1:
            met = " + ".join(f"({condition})" for condition in conditions)
            order = f"({met}) DESC, {order}"
        self._database.look_at_sums(collection_id)
        with self._caged() as connection:
            total = connection.execute(f"SELECT count(*) {body}", parameters).fetchone()[0]
            rows = connection.execute(
                f"SELECT d.id {body} ORDER BY {order} LIMIT :row_limit",
                {**parameters, "row_limit": limit},
            ).fetchall()
        return [row[0] for row in rows], int(total)

    def fields(
        self, auth: AuthContext, collection_id: int, sources: Sequence[str] = ()
    ) -> list[FieldInfo]:
        """Describe the fields of the records the caller may see, with example values.

        Of more than are described the most frequent are. One statement does it, once for all who
        see the same, as long as the collection does not change; the caller's time alone ends it.
        """
        key = self._key(auth, collection_id, tuple(sources))
        with self._lock:
            known = self._described.pop(key, None)
            if known is not None:
                self._described[key] = known  # the last to be forgotten
        if known is None:
            known = self._describe(auth, collection_id, sources)
            now = (collection_id, key.state)
            with self._lock:
                kept = [
                    old
                    for old in self._described
                    if old[:2] == now or old.collection_id != collection_id
                ]
                self._described = {old: self._described[old] for old in kept[1 - REMEMBERED :]}
                self._described[key] = known
        return list(known)

    def names(self, collection_id: int, auth: AuthContext | None = None) -> set[str]:
        """Return the names of all fields of a collection that a writer may see, None for all.

        Of all, each is one look into an index, however many records have it.
        """
        if auth is not None:
            visible, parameters = permission_filter(auth, collection_id, with_damaged=True)
            found = self._database.read().execute(
                f"""SELECT DISTINCT f.name FROM record_fields f
                    WHERE f.document IN (SELECT d.id FROM documents d WHERE {visible})""",
                parameters,
            )
            return {row[0] for row in found}
        rows = self._database.read().execute(
            """WITH RECURSIVE one(name) AS (
                 SELECT min(name) FROM record_fields WHERE collection_id = :id
                 UNION ALL
                 SELECT (SELECT min(name) FROM record_fields
                         WHERE collection_id = :id AND name > one.name)
                 FROM one WHERE one.name IS NOT NULL)
               SELECT name FROM one WHERE name IS NOT NULL""",
            {"id": collection_id},
        )
        return {row[0] for row in rows}

    def seen(
        self,
        auth: AuthContext,
        collection_id: int,
        names: AbstractCollection[str],
        sources: Sequence[str] = (),
    ) -> set[str]:
        """Return those of these names that a field has which the caller may see."""
        visible, parameters = permission_filter(auth, collection_id, sources)
        with self._caged() as connection:
            query = (
                "SELECT 1 FROM record_fields f JOIN documents d ON d.id = f.document"
                f" WHERE f.collection_id = :p_collection AND f.name = :name AND {visible} LIMIT 1"
            )
            return {
                name
                for name in names
                if connection.execute(query, {**parameters, "name": name}).fetchone()
            }

    def _key(
        self, auth: AuthContext, collection_id: int, sources: tuple[str, ...]
    ) -> DescriptionKey:
        connection = self._database.read()
        version = connection.execute("SELECT value FROM meta WHERE key = 'index_version'")
        now = int(version.fetchone()[0])
        known = self._states.get(collection_id)
        if known is None or known[0] != now:
            rows = connection.execute("SELECT DISTINCT principal FROM document_acl")
            principals = frozenset(row[0] for row in rows)
            state = connection.execute(_STATE, (collection_id,)).fetchone()
            known = self._states[collection_id] = now, tuple(state), principals
        return DescriptionKey(
            collection_id,
            known[1],
            auth.tenant,
            auth.principals & known[2],
            auth.allowed_sources,
            auth.version_policy,
            auth.where,
            sources,
        )

    def _describe(
        self, auth: AuthContext, collection_id: int, sources: Sequence[str]
    ) -> list[FieldInfo]:
        visible, parameters = permission_filter(auth, collection_id, sources)
        parameters |= {"most": self._most_fields, "examples": EXAMPLES, "long": LONGEST_NAME}
        with self._caged(limited=False) as connection:
            rows = connection.execute(
                _DESCRIPTION.format(visible=visible), {**parameters, "longest": LONGEST_EXAMPLE}
            ).fetchall()
        examples: dict[str, list[str]] = {}
        for row in rows:
            examples.setdefault(row["name"], [])
            if row["shown"]:
                examples[row["name"]].append(row["value"])
        each = max(1, ALL_EXAMPLES // max(1, len(examples)))
        return [
            FieldInfo(
                name=row["name"],
                type="number" if row["is_number"] else "text",
                values=row["n"],
                examples=examples[row["name"]][:each],
            )
            for row in rows
            if row["place"] == 1
        ]

    @contextmanager
    def _caged(self, *, limited: bool = True) -> Iterator[sqlite3.Connection]:
        connection = self._database.read()
        limit = TimeLimit()
        if limited:
            limit = TimeLimit(
                time.monotonic() + self._timeout_s,
                f"a record query may take {self._timeout_s:g} s (sql_timeout_s)",
                "narrow it, or raise the setting",
            )
        connection.set_authorizer(_authorize)
        try:
            with limited_time(limit):
                yield connection
        finally:
            connection.set_authorizer(None)


# No row id is used twice, so these tell any two states of a collection apart.
_STATE = """SELECT count(*), max(id), (SELECT count(*) FROM quarantine),
    (SELECT max(document) FROM quarantine) FROM documents WHERE collection_id = ?"""

# The fields that most records have, by name, each with its first values in order; long ones come
# last and are not shown. Who may see a document is asked once for it, not for each of its fields.
_DESCRIPTION = """
SELECT name, value, shown, place, n, is_number FROM (
  SELECT *, dense_rank() OVER (ORDER BY rows DESC, name) AS field FROM (
    SELECT name, value, length(value) <= :longest AS shown,
      row_number() OVER (PARTITION BY name ORDER BY length(value) > :longest, value) AS place,
      count(*) OVER (PARTITION BY name) AS n,
      sum(rows) OVER (PARTITION BY name) AS rows,
      sum(rows) OVER (PARTITION BY name) = sum(numbers) OVER (PARTITION BY name) AS is_number
    FROM (
      SELECT f.name, f.value, count(*) AS rows, count(f.number) AS numbers
      FROM record_fields f
      WHERE f.document IN (SELECT d.id FROM documents d WHERE {visible})
        AND length(f.name) <= :long
      GROUP BY f.name, f.value))
  WHERE place <= :examples)
WHERE field <= :most ORDER BY name, place"""


def _authorize(
    action: int, first: str | None, second: str | None, database: str | None, source: str | None
) -> int:
    if action == sqlite3.SQLITE_SELECT:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_READ and first in READABLE:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and second in FUNCTIONS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _clause(condition: Condition, n: int, parameters: Parameters) -> str:
    parameters[f"w_field{n}"] = condition.field
    match = f"SELECT 1 FROM record_fields f WHERE f.document = d.id AND f.name = :w_field{n}"
    value = condition.value
    if condition.op == "contains" or (condition.op == "=" and isinstance(value, str)):
        text = value if isinstance(value, str) else f"{value:.15g}"
        parameters[f"w_value{n}"] = text.casefold()
        test = (
            f"f.folded = :w_value{n}"
            if condition.op == "="
            else f"instr(f.folded, :w_value{n}) > 0"
        )
        return f"EXISTS ({match} AND {test})"
    try:
        parameters[f"w_value{n}"] = float(value)
    except ValueError:
        raise CallerError(
            f"'{condition.op}' compares numbers", value=condition.value, hint="give a number"
        ) from None
    return f"EXISTS ({match} AND f.number {condition.op} :w_value{n})"
