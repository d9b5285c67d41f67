"""What a stored run counted: whether its reader may see just the same records now."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from core.auth import AuthContext
from stores.sqlite.catalogue import Collection
from stores.sqlite.permissions import permission_filter
from stores.sqlite.sums import sign

Counts = dict[str, list[int]]  # by collection: the last row id, how many, and two sums of row ids


def counted(
    connection: sqlite3.Connection,
    reader: AuthContext,
    numbers: Iterable[int],
    last: Counts | None = None,
) -> Counts:
    """Return what tells the records apart that a reader may see, up to `last`.

    Later records change nothing, one that was closed or erased since does.
    """
    found: Counts = {}
    for number in numbers:
        condition, given = permission_filter(reader.rights, number)
        row = connection.execute(
            f"""SELECT coalesce(max(d.id), 0), count(*), coalesce(sum(d.id), 0),
                coalesce(sum(d.id * d.id % 1000003), 0) FROM documents d
                WHERE {condition} AND d.is_record = 1 AND (:last IS NULL OR d.id <= :last)""",
            {**given, "last": last[str(number)][0] if last else None},
        ).fetchone()
        found[str(number)] = list(row)
    return found


def counts_same(connection: sqlite3.Connection, reader: AuthContext, then: Counts) -> bool:
    """Tell whether a reader may see now just the records that were counted then."""
    now = counted(connection, reader, [int(number) for number in then], then)
    return all(now[number][1:] == kept[1:] for number, kept in then.items())


@contextmanager
def renewed_counts(connection: sqlite3.Connection, collection: Collection) -> Iterator[None]:
    """Let the block erase records; counts that were right for who asked stay right.

    What rested on them is erased as well: it is not closed to them.
    """
    same = {
        (run_id, place): then
        for run_id, reader, access in _runs(connection, collection)
        for place, then in enumerate(_all(access))
        if reader(then) == then
    }
    yield
    for run_id, reader, access in _runs(connection, collection) if same else ():
        for place, then in enumerate(_all(access)):
            if (run_id, place) in same:
                then.update(reader(then))
        connection.execute(
            "UPDATE runs SET result = json_set(result, '$.access', json(?)) WHERE run_id = ?",
            (json.dumps(access, ensure_ascii=False), run_id),
        )
        sign(connection, "runs", "r.run_id = ?", run_id)


def _all(access: dict[str, Any]) -> list[Counts]:
    return [one for one in [access.get("counted"), *access.get("counted_before", [])] if one]


def _runs(
    connection: sqlite3.Connection, collection: Collection
) -> Iterator[tuple[str, Callable[[Counts], Counts], dict[str, Any]]]:
    """Yield the runs that counted records of a collection, with what their asker may see now."""

    @cache
    def seen(rights: str, last: int) -> list[int]:
        asker = AuthContext.model_validate_json(rights)
        number = str(collection.id)
        return [last, *counted(connection, asker, [collection.id], {number: [last]})[number][1:]]

    rows = connection.execute(
        """SELECT run_id, user, json_extract(result, '$.access') AS access FROM runs r
           WHERE tenant = ? AND instr(',' || r.collection || ',', ',' || ? || ',')
           AND instr(r.result, '"counted')""",
        (collection.tenant, collection.name),
    ).fetchall()
    for row in rows:
        access = json.loads(row["access"])
        asked = {
            "tenant": collection.tenant,
            "user": row["user"],
            **next(iter(access["asked"]), {}),
        }
        rights = AuthContext.model_validate(asked).model_dump_json()

        def now(then: Counts, rights: str = rights) -> Counts:
            number = str(collection.id)
            return then | ({number: seen(rights, then[number][0])} if number in then else {})

        yield row["run_id"], now, access
