"""Which passages of stored runs are closed to who reads them now, by one query for many runs.

A passage is open when its document is open to the reader now, as the permission filter says, and
the version of it that was read was open to somebody with the reader's rights. With each run is kept
what the second takes: who could read each document of its passages when it ended. What it counted
is open when its reader may see just the same records now.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Collection as AbstractCollection
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from core.auth import AuthContext
from core.metadata import ROW
from core.question import names_of
from core.recall import NOTE
from stores.erasure.redaction import ERASED, listed_by, withhold
from stores.sqlite.catalogue import Collection
from stores.sqlite.permissions import permission_filter
from stores.sqlite.sums import LINK, RUN, sign

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
           WHERE tenant = ? AND instr(',' || r.collection || ',', ',' || ? || ',') > 0
           AND instr(r.result, '"counted') > 0""",
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


ASKED = ("roles", "allowed_sources", "version_policy")  # of the rights that a run was asked with
BOOK = "book:"  # before the id of a passage that has the title and authors of its book with it

# What `kept` reads of sound runs r, beside their id.
KEPT = "r.collection, json_extract(r.result, '$.access') AS access"

_CHUNKS = """json_each(:names) n CROSS JOIN chunks c ON c.chunk_id = n.value
    CROSS JOIN documents d ON d.id = c.document"""
_BOOKS = f"""json_each(:names) n
    CROSS JOIN chunks c ON c.chunk_id = substr(n.value, {len(BOOK) + 1})
    CROSS JOIN book_texts b ON b.text = c.document AND b.sum IS {LINK}
    CROSS JOIN documents d ON d.id = b.book"""
_HERE = "d.collection_id IN (SELECT CAST(value AS INTEGER) FROM json_each(:collections))"

Document = tuple[str, list[str] | None, str]  # key, who could read it (None: all), version


class Kept(NamedTuple):
    """Hold a stored run with who could read its documents."""

    run_id: str
    collection: str
    access: dict[str, Any]


class Closed(NamedTuple):
    """Hold what a reader may not see of a run: ids of its passages, and whether of those before.

    `before` says that earlier turns of its conversation rest on any, which its texts may repeat,
    `counts` that other records than then are open to the reader now: those that were counted;
    `lesser` that the reader has fewer rights than who asked, and does not learn what was erased.
    """

    names: frozenset[str]
    before: bool
    counts: bool = False
    lesser: bool = False

    def hide(self, result: dict[str, Any], trail: list[dict[str, Any]]) -> None:
        """Take it out of a run, in place."""
        items = result.get("evidence", [])
        own = {item["evidence_id"] for item in items if self.names & set(_names_of(item))}
        if self.counts:
            own |= {item["evidence_id"] for item in items if item.get("kind") == ROW}
        if self.lesser:
            own |= {item["evidence_id"] for item in items if item.get("document_id") == ERASED}
        rests = self.before or self.counts or bool(self.names | own)
        withhold(result, trail, own | self.names, rests=rests)

    def answer(self, result: dict[str, Any]) -> str:
        """Return what stays of a run's answer; the result is changed."""
        self.hide(result, [])
        return str(result.get("answer", ""))


def kept(row: sqlite3.Row) -> Kept:
    """Return a run from a row with its id and the columns of KEPT."""
    return Kept(row["run_id"], row["collection"], json.loads(row["access"]))


def access_of(
    connection: sqlite3.Connection,
    reader: AuthContext,
    collection: str,
    result: dict[str, Any],
    trail: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return who can read the documents of a run's passages at this moment.

    `documents` are [key, principals or None for all, version], None for one that was erased; `of`
    has the place of a passage's; `before` are those of the turns before it; `notes` are
    those that it read, `notes_before` those of the turns before. `counted` tells which
    records the reader could see where the run counted any, and a turn before it did.
    """
    access = _named_access(result, trail)
    numbers = collection_ids(connection, reader.tenant, collection)
    rows = any(item.get("kind") == ROW for item in result.get("evidence", []))
    access["counted"] = counted(connection, reader, numbers if rows else [])
    given = {"names": _json(access["of"]), "collections": json.dumps(numbers)}
    columns = """d.key, d.is_open, d.version, (SELECT json_group_array(a.principal)
        FROM document_acl a WHERE a.document = d.id) AS principals"""
    places: dict[str, int] = {}
    for row in connection.execute(
        f"""SELECT c.chunk_id AS name, {columns} FROM {_CHUNKS} WHERE {_HERE}
            UNION ALL SELECT n.value, {columns} FROM {_BOOKS} WHERE {_HERE}""",
        given,
    ):
        if row["key"] not in places:
            places[row["key"]] = len(places)
            principals = None if row["is_open"] else json.loads(row["principals"])
            access["documents"].append([row["key"], principals, row["version"]])
        access["of"][row["name"]] = places[row["key"]]
    for run in last_turn(connection, result.get("conversation_id", "")):
        for one in (*run.access["documents"], *run.access["before"]):
            if one is not None and one not in access["before"]:
                access["before"].append(one)
        read = {*run.access.get("notes", ()), *run.access.get("notes_before", ())}
        if read:
            access["notes_before"] = sorted(read)
        counts = [*run.access.get("counted_before", []), run.access.get("counted")]
        if found := [one for one in counts if one]:
            access["counted_before"] = found
    return access


def forget_documents(access: dict[str, Any], keys: AbstractCollection[str]) -> bool:
    """Take erased documents out of who could read what, in place; return whether any was there."""
    known = [*access["documents"], *access["before"]]
    if not any(one is not None and one[0] in keys for one in known):
        return False
    access["documents"] = [
        None if one is None or one[0] in keys else one for one in access["documents"]
    ]
    gone = {place for place, one in enumerate(access["documents"]) if one is None}
    access["of"] = {name: place for name, place in access["of"].items() if place not in gone}
    access["before"] = [one for one in access["before"] if one[0] not in keys]
    return True


def forget_notes(access: dict[str, Any], ids: AbstractCollection[str]) -> None:
    """Take erased notes out of what a run and the turns before it read, in place."""
    for name in ("notes", "notes_before"):
        if name in access:
            access[name] = [one for one in access[name] if one not in ids]


def closed_runs(
    connection: sqlite3.Connection, auth: AuthContext, runs: Iterable[Kept]
) -> dict[str, Closed]:
    """Return, of undamaged runs of the caller's tenant, the parts closed to them, where any is."""
    known = list(runs)
    opened = _find_open(connection, auth, known)
    notes = _find_notes(connection, auth, known)
    found: dict[str, Closed] = {}
    for run_id, collection, access in known:
        documents, now = access["documents"], opened[collection]
        names = frozenset(
            name
            for name, place in access["of"].items()
            if not (name in now if place is None else _is_open(auth, documents[place], now))
        )
        names |= {one for one in access.get("notes", ()) if one not in notes}
        before = not all(_is_open(auth, one, now) for one in access["before"])
        before = before or not notes.issuperset(access.get("notes_before", ()))
        earlier = access.get("counted_before", [])
        before = before or not all(counts_same(connection, auth, one) for one in earlier)
        counts = not counts_same(connection, auth, access.get("counted", {}))
        lesser = not _covers(auth, access["asked"])
        if names or before or counts or lesser:
            found[run_id] = Closed(names, before, counts, lesser)
    return found


def _find_notes(
    connection: sqlite3.Connection, auth: AuthContext, runs: Iterable[Kept]
) -> set[str]:
    """Return which notes that runs have read are still there, and open to the caller now.

    One that rests on an answer is as open as its run.
    """
    names = {
        name
        for run in runs
        for read in ("notes", "notes_before")
        for name in run.access.get(read, ())
    }
    if not names:
        return set()
    rows = connection.execute(
        f"""SELECT m.note_id, r.run_id, {KEPT} FROM notes m LEFT JOIN runs r
            ON m.documents <> '[]' AND r.run_id = m.run_id AND r.sum IS {RUN}
            WHERE m.tenant = ? AND m.owner = ? AND (m.documents = '[]' OR r.run_id IS NOT NULL)
            AND m.note_id IN (SELECT value FROM json_each(?))""",
        (auth.tenant, auth.user, _json(names)),
    ).fetchall()
    rests = [kept(row) for row in rows if row["run_id"] is not None]
    closed = closed_runs(connection, auth, rests) if rests else {}
    return {row["note_id"] for row in rows if row["run_id"] not in closed}


def last_turn(connection: sqlite3.Connection, talk: str) -> list[Kept]:
    """Return the last undamaged run of a conversation, which stands for those before it too."""
    query = "SELECT run_id FROM conversation_turns WHERE conversation = ? ORDER BY id DESC"
    for (run_id,) in connection.execute(query, (talk,)).fetchall() if talk else ():
        one = f"SELECT r.run_id, {KEPT} FROM runs r WHERE r.run_id = ? AND r.sum IS {RUN}"
        if row := connection.execute(one, (run_id,)).fetchone():
            return [kept(row)]
    return []


def _named_access(result: dict[str, Any], trail: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the access of a run whose passages are named and whose documents are not known."""
    items = [
        *result.get("evidence", []),
        *(one for claim in result.get("claims", []) for one in claim.get("citations", [])),
    ]
    erased = {one["evidence_id"] for one in items if one.get("document_id") == ERASED}
    names = {name for item in items for name in _names_of(item)}
    names |= {slot["evidence_id"] for slot in (result.get("plan") or {}).get("slots", [])}
    names |= {name for step in trail for name, _ in step.get("evidence", [])}
    asked: list[dict[str, Any]] = []
    for step in trail:
        rights = {name: step["auth_filter"].get(name) for name in ASKED if step.get("auth_filter")}
        asked += [rights] if rights and rights not in asked else []
    counts = {one["evidence_id"] for one in items if one.get("kind") == ROW}
    read = [one for one in items if one.get("kind") == NOTE]
    notes = {name for one in read for name in (one["evidence_id"], *listed_by(one))}
    passages = dict.fromkeys(sorted(names - erased - counts - notes))
    found = {"asked": asked, "documents": [], "of": passages, "before": []}
    return {**found, "notes": sorted(notes)} if notes else found


def _names_of(item: dict[str, Any]) -> list[str]:
    """Return the passages that a piece of evidence rests on: of a count, those that it lists."""
    if item.get("kind") == ROW:
        return listed_by(item)
    name = item["evidence_id"]
    return [name, f"{BOOK}{name}"] if (item.get("metadata") or {}).get("book") else [name]


def _find_open(
    connection: sqlite3.Connection, auth: AuthContext, runs: Iterable[Kept]
) -> dict[str, set[str]]:
    """Return by collection the keys, and the names whose key is not known, that are open now."""
    keys: dict[str, set[str]] = defaultdict(set)
    names: dict[str, set[str]] = defaultdict(set)
    for _, collection, access in runs:
        documents = (*access["documents"], *access["before"])
        keys[collection] |= {one[0] for one in documents if one is not None}
        names[collection] |= {name for name, place in access["of"].items() if place is None}
    opened: dict[str, set[str]] = {}
    for collection in keys:
        opened[collection] = set()
        for number in collection_ids(connection, auth.tenant, collection):
            condition, given = permission_filter(auth, number)
            rows = connection.execute(
                f"""SELECT d.key FROM json_each(:keys) k CROSS JOIN documents d ON d.key = k.value
                    WHERE {condition}
                    UNION ALL SELECT c.chunk_id FROM {_CHUNKS} WHERE {condition}
                    UNION ALL SELECT n.value FROM {_BOOKS} WHERE {condition}""",
                {**given, "keys": _json(keys[collection]), "names": _json(names[collection])},
            )
            opened[collection] |= {row[0] for row in rows}
    return opened


def _is_open(auth: AuthContext, document: Document, opened: set[str]) -> bool:
    """Tell whether a document is open now, and its version of then was."""
    key, principals, version = document
    if key not in opened or (principals is not None and auth.principals.isdisjoint(principals)):
        return False
    return version in ("", auth.asked_version) or not auth.asked_version


def _covers(auth: AuthContext, asked: list[dict[str, Any]]) -> bool:
    """Tell whether a caller has the rights that a run was asked with, of which its trail may tell.

    A search notes counts and values of more documents than it returns. The operator may read them:
    the files are theirs.
    """
    if auth.operator:
        return True
    now = auth.describe()
    return all(
        auth.roles.issuperset(one["roles"] or ())
        and now["allowed_sources"] in (None, one["allowed_sources"])
        and now["version_policy"] in ("any", one["version_policy"])
        for one in asked
    )


def collection_ids(connection: sqlite3.Connection, tenant: str, names: str) -> list[int]:
    """Return the row ids of the collections of a run that are still there."""
    rows = connection.execute(
        """SELECT id FROM collections WHERE tenant = ?
           AND name IN (SELECT value FROM json_each(?)) ORDER BY id""",
        (tenant, _json(names_of(names))),
    )
    return [int(row[0]) for row in rows]


def _json(values: Iterable[str]) -> str:
    return json.dumps(sorted(values))
