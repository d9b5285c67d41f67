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
from typing import NamedTuple

from core.auth import AuthContext
from core.budget import TimeLimit, limited_time
from core.metadata import Filter
from core.types import FieldInfo, RecordTable
from stores.sqlite.database import CataloguePart, Database
from stores.sqlite.permissions import (
    FAMILY,
    IS_ROW,
    KNOWN,
    MATCHES,
    MEETS,
    ORDER,
    SOUND,
    Parameters,
    permission_filter,
)
from stores.sqlite.record_conditions import (
    HAS_WORDS,
    Condition,
    RecordScope,
    clause,
    sounds_like,
    words_test,
)
from stores.sqlite.sums import FUNCTION

READABLE = {"documents", "document_acl", "record_fields", "quarantine"}
WINDOWS = {"row_number", "dense_rank", "sum"}
FUNCTIONS = {"count", "min", "max", "glob", "instr", "length", MATCHES} | WINDOWS
FUNCTIONS |= {MEETS, FAMILY, ORDER, "coalesce", KNOWN, SOUND, FUNCTION}  # of sums
FUNCTIONS |= {"avg", "substr", "rtrim", HAS_WORDS}
# What a description holds and a query looks at: all numbers are chosen, not measured.
MOST_TABLES = 50  # more files are no tables that a question would name
LONGEST_NAME = 100  # of a field that a condition can name
EXAMPLES = 200  # of one field
# Of all fields together, so that neither a description nor choosing by it takes long.
ALL_EXAMPLES = 20_000
LONGEST_EXAMPLE = 300  # no question says more of a value
LONGEST_SOUND, MOST_SOUNDS = 60, 50_000  # of values that may be names
MOST_CALLED = 20  # works of one title: more are shown by no answer
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


class Groups(NamedTuple):
    """Hold the number of each value of a field, most first, and how many values there are."""

    counts: list[tuple[str, float]]
    values: int


class Description(NamedTuple):
    """Describe the records a caller may see: their fields, their files, and what is none."""

    fields: list[FieldInfo]
    tables: list[RecordTable]
    others: int


class Records(CataloguePart):
    """Query the fields of the records a caller may see."""

    def __init__(self, database: Database, *, timeout_s: float, most_fields: int) -> None:
        """Give each query at most `timeout_s` seconds; describe up to `most_fields` fields."""
        CataloguePart.__init__(self, database)  # which the catalogue has in two ways
        self._timeout_s = timeout_s
        self._most_fields = most_fields
        self._described: dict[DescriptionKey, Description] = {}
        self._states: dict[int, tuple[int, tuple[int, ...], frozenset[str]]] = {}
        self._describing = threading.Lock()

    def find_records(
        self,
        scope: RecordScope,
        where: Sequence[Condition],
        *,
        most: bool = False,
        order_by: str | None,
        descending: bool,
        limit: int,
    ) -> tuple[list[int], int]:
        body, parameters = _body(scope, where, most=most)
        conditions = [clause(condition, n, parameters) for n, condition in enumerate(where)]
        order = "d.id"
        if order_by is not None:
            parameters["order_field"] = order_by
            best = "max" if descending else "min"
            field = "FROM record_fields o WHERE o.document = d.id AND o.name = :order_field"
            way = "DESC" if descending else "ASC"
            order = (
                f"(SELECT {best}(o.number) {field}) {way} NULLS LAST,"
                f" (SELECT {best}(o.folded) {field}) {way} NULLS LAST, d.id"
            )
        if most and len(conditions) > 1:
            met = " + ".join(f"CASE WHEN {condition} THEN 1 ELSE 0 END" for condition in conditions)
            order = f"({met}) DESC, {order}"
        parameters["row_limit"] = limit
        self._database.look_at_sums(scope.collection_id)
        with self._caged():
            total = self._value(f"SELECT count(*) {body}", parameters)
            rows = self._all(f"SELECT d.id {body} ORDER BY {order} LIMIT :row_limit", parameters)
        return [row[0] for row in rows], int(total)

    def group_records(
        self,
        scope: RecordScope,
        where: Sequence[Condition],
        field: str,
        *,
        adds: str | None = None,
        average: bool = False,
        characters: int = 0,
        limit: int,
    ) -> Groups:
        body, parameters = _body(scope, where)
        parameters |= {"group_field": field, "row_limit": limit}
        number, more = "count(DISTINCT d.id)", ""
        if adds is not None:
            parameters["adds"] = adds
            number = f"{'avg' if average else 'sum'}(a.number)"
            more = " JOIN record_fields a ON a.document = d.id AND a.name = :adds"
        value = f"substr(g.value, 1, {characters:d})" if characters else "g.value"
        folded = value.replace("value", "folded")
        grouped = f"""SELECT min({value}) AS shown, {number} AS n
            {body.replace("WHERE", f"JOIN record_fields g ON g.document = d.id{more} WHERE", 1)}
            AND g.name = :group_field GROUP BY {folded}"""
        self._database.look_at_sums(scope.collection_id)
        with self._caged():
            values = self._value(f"SELECT count(*) FROM ({grouped})", parameters)
            rows = self._all(f"{grouped} ORDER BY n DESC, shown LIMIT :row_limit", parameters)
        return Groups([(row["shown"], row["n"]) for row in rows], int(values))

    def total_of_records(
        self, scope: RecordScope, where: Sequence[Condition], field: str
    ) -> tuple[float, float, int] | None:
        body, parameters = _body(scope, where)
        query = f"""SELECT sum(g.number), avg(g.number), count(g.number)
            {body.replace("WHERE", "JOIN record_fields g ON g.document = d.id WHERE", 1)}
            AND g.name = :sum_field"""
        self._database.look_at_sums(scope.collection_id)
        with self._caged():
            found = self._one(query, {**parameters, "sum_field": field})
        return (float(found[0]), float(found[1]), int(found[2])) if found[2] else None

    def records_having(self, scope: RecordScope, words: str) -> list[tuple[str, bool]]:
        body, parameters = _body(scope, [])
        test = words_test(words, "w_words", parameters)
        parameters["w_whole"] = words.casefold()
        query = f"""SELECT f.name, max(CASE WHEN f.folded = :w_whole THEN 1 ELSE 0 END) AS whole,
                count(DISTINCT d.id) AS n
            {body.replace("WHERE", "JOIN record_fields f ON f.document = d.id WHERE", 1)}
            AND {test} GROUP BY f.name ORDER BY whole DESC, n DESC, f.name"""
        with self._caged():
            found = self._all(query, parameters)
        return [(row["name"], bool(row["whole"])) for row in found]

    def records_called(
        self, auth: AuthContext, collection_id: int, words: str, sources: Sequence[str] = ()
    ) -> list[str]:
        visible, parameters = permission_filter(auth, collection_id, sources)
        parameters |= {"words": words, "whole": words.casefold(), "most": MOST_CALLED}
        self._database.look_at_sums(collection_id)
        named = f"""SELECT d.key FROM documents d WHERE {visible} AND {HAS_WORDS}(d.title, :words)
            ORDER BY length(d.title), d.id LIMIT :most"""
        held = f"""SELECT DISTINCT d.key FROM record_fields f JOIN documents d ON d.id = f.document
            WHERE f.folded = :whole AND {visible} LIMIT 2"""
        with self._caged():
            keys = [row[0] for row in self._all(named, parameters)]
            alone = [] if keys else [row[0] for row in self._all(held, parameters)]
        return keys or alone * (len(alone) == 1)

    def records_sounding(self, scope: RecordScope, name: str) -> list[tuple[str, str]]:
        body, parameters = _body(scope, [])
        parameters |= {"longest": LONGEST_SOUND, "most": MOST_SOUNDS}
        query = f"""SELECT DISTINCT f.name, f.value
            {body.replace("WHERE", "JOIN record_fields f ON f.document = d.id WHERE", 1)}
            AND f.number IS NULL AND length(f.value) <= :longest LIMIT :most"""
        with self._caged():
            found = self._all(query, parameters)
        return [(row["name"], row["value"]) for row in found if sounds_like(row["value"], name)]

    def fields_of_records(
        self, auth: AuthContext, collection_id: int, sources: Sequence[str] = ()
    ) -> list[FieldInfo]:
        return list(self.describe_records(auth, collection_id, sources).fields)

    def describe_records(
        self, auth: AuthContext, collection_id: int, sources: Sequence[str] = ()
    ) -> Description:
        key = self._key(auth, collection_id, tuple(sources))
        with self._describing:
            known = self._described.pop(key, None)
            if known is not None:
                self._described[key] = known  # the last to be forgotten
        if known is None:
            known = self._describe(auth, collection_id, sources)
            now = (collection_id, key.state)
            with self._describing:
                kept = [
                    old
                    for old in self._described
                    if old[:2] == now or old.collection_id != collection_id
                ]
                self._described = {old: self._described[old] for old in kept[1 - REMEMBERED :]}
                self._described[key] = known
        return known

    def field_names(self, collection_id: int, auth: AuthContext | None = None) -> set[str]:
        if auth is not None:
            visible, parameters = permission_filter(auth, collection_id, with_damaged=True)
            found = self._all(
                f"""SELECT DISTINCT f.name FROM record_fields f
                    WHERE f.document IN (SELECT d.id FROM documents d WHERE {visible})""",
                parameters,
            )
            return {row[0] for row in found}
        rows = self._all(
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

    def known_fields(
        self,
        auth: AuthContext,
        collection_id: int,
        names: AbstractCollection[str],
        sources: Sequence[str] = (),
    ) -> set[str]:
        visible, parameters = permission_filter(auth, collection_id, sources)
        query = f"""SELECT 1 FROM record_fields f JOIN documents d ON d.id = f.document
            WHERE f.collection_id = :p_collection AND f.name = :name AND {visible} LIMIT 1"""
        with self._caged():
            return {name for name in names if self._one(query, {**parameters, "name": name})}

    def _key(
        self, auth: AuthContext, collection_id: int, sources: tuple[str, ...]
    ) -> DescriptionKey:
        now = int(self._value("SELECT value FROM meta WHERE key = 'index_version'"))
        known = self._states.get(collection_id)
        if known is None or known[0] != now:
            rows = self._all("SELECT DISTINCT principal FROM document_acl")
            principals = frozenset(row[0] for row in rows)
            state = self._one(_STATE, (collection_id,))
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
    ) -> Description:
        visible, parameters = permission_filter(auth, collection_id, sources)
        parameters |= {"most": self._most_fields, "examples": EXAMPLES, "long": LONGEST_NAME}
        parameters |= {"longest": LONGEST_EXAMPLE, "tables": MOST_TABLES}
        found: dict[str, list[sqlite3.Row]] = {"field": [], "file": [], "held": []}
        with self._caged(limited=False):
            for row in self._all(_DESCRIPTION.format(visible=visible, table=_TABLE), parameters):
                found[row["kind"]].append(row)
        rows, files = found["field"], found["file"]
        examples: dict[str, list[str]] = {}
        for row in rows:
            examples.setdefault(row["name"], [])
            if row["shown"]:
                examples[row["name"]].append(row["value"])
        each = max(1, ALL_EXAMPLES // max(1, len(examples)))
        fields = [
            FieldInfo(
                name=row["name"],
                type="number" if row["is_number"] else "text",
                values=row["n"],
                examples=examples[row["name"]][:each],
            )
            for row in rows
            if row["place"] == 1
        ]
        held: dict[str, list[str]] = {}
        for row in found["held"]:
            held.setdefault(row["name"], []).append(row["value"])
        counts = {row["name"]: row["n"] for row in files if row["shown"]}
        tables = [
            RecordTable(file=file, records=counts[file], fields=names)
            for file, names in held.items()
        ]
        if len(counts) > MOST_TABLES:
            everything = [info.name for info in fields]
            tables = [RecordTable(file="", records=sum(counts.values()), fields=everything)]
        return Description(fields, tables, sum(row["n"] for row in files if not row["shown"]))

    @contextmanager
    def _caged(self, *, limited: bool = True) -> Iterator[sqlite3.Connection]:
        """Let this thread's connection read in the block what a record query may, and no longer."""
        connection = self._database.read()
        limit = TimeLimit()
        if limited:
            limit = TimeLimit(
                time.monotonic() + self._timeout_s,
                f"a record query may take {self._timeout_s:g} s (retrieval.sql_timeout_s)",
                "narrow it, or raise the setting",
            )
        connection.set_authorizer(authorize)
        try:
            with limited_time(limit):
                yield connection
        finally:
            connection.set_authorizer(None)


# The table that a record is of: its file, or the one in a document that is in front of its number.
_TABLE = f"CASE WHEN {IS_ROW} THEN rtrim(rtrim(d.source, '0123456789'), '!') ELSE d.file END"

# No row id is used twice, so these tell any two states of a collection apart.
_STATE = """SELECT count(*), max(id), (SELECT count(*) FROM quarantine),
    (SELECT max(document) FROM quarantine), (SELECT value FROM meta WHERE key = 'acl_changes')
    FROM documents WHERE collection_id = ?"""

# The fields that most records have, by name, each with its first values in order, long ones last
# and not shown; the files, `shown` being whether of records; and, of few files, the fields of each.
# Who may see a document is asked once for all, not for each of its fields.
_DESCRIPTION = """
WITH seen AS MATERIALIZED (
  SELECT d.id, {table} AS file, d.is_record FROM documents d WHERE {visible})
SELECT 'field' AS kind, name, place, value, shown, n, is_number FROM (
  SELECT *, dense_rank() OVER (ORDER BY rows DESC, name) AS field FROM (
    SELECT name, value, CASE WHEN length(value) <= :longest THEN 1 ELSE 0 END AS shown,
      row_number() OVER (PARTITION BY name ORDER BY length(value) > :longest, value) AS place,
      count(*) OVER (PARTITION BY name) AS n,
      sum(rows) OVER (PARTITION BY name) AS rows,
      CASE WHEN sum(rows) OVER (PARTITION BY name) = sum(numbers) OVER (PARTITION BY name)
        THEN 1 ELSE 0 END AS is_number
    FROM (
      SELECT f.name, f.value, count(*) AS rows, count(f.number) AS numbers
      FROM record_fields f
      WHERE f.document IN (SELECT id FROM seen) AND length(f.name) <= :long
      GROUP BY f.name, f.value))
  WHERE place <= :examples)
WHERE field <= :most
UNION ALL SELECT 'file', file, 0, '', is_record, count(*), 0 FROM seen GROUP BY file, is_record
UNION ALL SELECT 'held', s.file, min(f.rowid), f.name, 1, 0, 0
  FROM seen s JOIN record_fields f ON f.document = s.id
  WHERE s.is_record = 1
    AND (SELECT count(DISTINCT file) FROM seen WHERE is_record = 1) <= :tables
  GROUP BY s.file, f.name
ORDER BY kind, name, place"""


def _body(
    scope: RecordScope, where: Sequence[Condition], *, most: bool = False
) -> tuple[str, Parameters]:
    """Return what follows the columns of a query over the records that meet the conditions."""
    visible, parameters = permission_filter(scope.auth, scope.collection_id, scope.sources)
    conditions = [clause(condition, n, parameters) for n, condition in enumerate(where)]
    joined = (" OR " if most else " AND ").join(conditions)
    clauses = [visible, "d.is_record = 1", *([f"({joined})"] if conditions else [])]
    if scope.files:
        named = {f"in_file{n}": file for n, file in enumerate(scope.files)}
        parameters |= named
        clauses.append(f"{_TABLE} IN ({', '.join(f':{name}' for name in named)})")
    return f"FROM documents d WHERE {' AND '.join(clauses)}", parameters


def authorize(
    action: int, first: str | None, second: str | None, database: str | None, source: str | None
) -> int:
    """Tell SQLite what a query of records may read and call, in its own numbers."""
    if action == sqlite3.SQLITE_SELECT:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_READ and first in READABLE:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and second in FUNCTIONS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY
