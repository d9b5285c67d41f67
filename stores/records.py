"""Queries over record fields: structured in, caged SQL out.

The caller's permissions are part of every statement, the connection is read-only, an authorizer
allows reads of the named tables alone, and a progress handler ends what takes too long.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from pydantic import Field

from core.auth import AuthContext
from core.errors import CallerError
from core.types import FieldInfo, Value
from stores.database import Database
from stores.permissions import MATCHES, Parameters, permission_filter

READABLE = {"documents", "document_acl", "record_fields", "quarantine"}
FUNCTIONS = {"count", "min", "max", "glob", "instr", MATCHES}
PROGRESS_STEPS = 10_000
EXAMPLES = 200
REMEMBERED = 64  # descriptions of fields, by who asks and of what

Described = tuple[int, AuthContext, int, tuple[str, ...]]

Operator = Literal["=", "contains", "<", "<=", ">", ">="]


class Condition(Value):
    """Compare one field; `contains` and `=` ignore case, the others (and `=` 7) compare numbers."""

    field: str = Field(min_length=1, max_length=100)
    op: Operator = "contains"
    value: str | float = Field(description="text for = and contains, a number for the others")


class Records:
    """Query the fields of the records a caller may see."""

    def __init__(self, database: Database, *, timeout_s: float) -> None:
        """Give each query at most `timeout_s` seconds."""
        self._database = database
        self._timeout_s = timeout_s
        self._described: dict[Described, list[FieldInfo]] = {}
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

        That takes as long as the collection has fields, so it is remembered until the index
        changes. No question makes it slower, so no limit of time ends one over it.
        """
        version = self._database.read().execute(
            "SELECT value FROM meta WHERE key = 'index_version'"
        )
        key = (int(version.fetchone()[0]), auth, collection_id, tuple(sources))
        with self._lock:
            known = self._described.get(key)
        if known is None:
            known = self._describe(auth, collection_id, sources)
            with self._lock:
                kept = [old for old in self._described if old[0] == key[0]][1 - REMEMBERED :]
                self._described = {old: self._described[old] for old in kept} | {key: known}
        return list(known)

    def _describe(
        self, auth: AuthContext, collection_id: int, sources: Sequence[str]
    ) -> list[FieldInfo]:
        visible, parameters = permission_filter(auth, collection_id, sources)
        join = f"FROM record_fields f JOIN documents d ON d.id = f.document WHERE {visible}"
        with self._caged(limited=False) as connection:
            rows = connection.execute(
                f"""SELECT f.name, count(DISTINCT f.value) AS n, count(*) = count(f.number) AS num
                    {join} GROUP BY f.name ORDER BY f.name""",
                parameters,
            ).fetchall()
            described = []
            for row in rows:
                examples = connection.execute(
                    f"SELECT DISTINCT f.value {join} AND f.name = :name ORDER BY f.value"
                    " LIMIT :examples",
                    {**parameters, "name": row["name"], "examples": EXAMPLES},
                ).fetchall()
                described.append(
                    FieldInfo(
                        name=row["name"],
                        type="number" if row["num"] else "text",
                        values=row["n"],
                        examples=[value[0] for value in examples],
                    )
                )
        return described

    @contextmanager
    def _caged(self, *, limited: bool = True) -> Iterator[sqlite3.Connection]:
        connection = self._database.read()
        deadline = time.monotonic() + self._timeout_s
        if limited:
            connection.set_progress_handler(lambda: time.monotonic() > deadline, PROGRESS_STEPS)
        connection.set_authorizer(_authorize)
        try:
            yield connection
        except sqlite3.OperationalError as error:
            if "interrupted" not in str(error):
                raise
            raise CallerError(
                f"a record query may take {self._timeout_s:g} s (sql_timeout_s)",
                hint="narrow it, or raise the setting",
            ) from None
        finally:
            connection.set_authorizer(None)
            connection.set_progress_handler(None, 0)


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
