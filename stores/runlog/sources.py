"""Sources that are kept in sync, and what each has brought."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, field, fields
from typing import Any

from core.auth import AuthContext
from core.errors import AbsentError, CallerError
from stores.sqlite.database import CataloguePart
from stores.sqlite.sums import SOURCE, sign

# A damaged source is none: its access list may be another than it was given.
SOUND = f"y.sum IS {SOURCE}"


@dataclass(eq=False)
class SourceRow:
    """Hold one source; `user` is its owner, "" for the operator.

    `options` are private (whether private addresses are allowed) and parameters; `acl` is who may
    read what it brings, empty for the whole tenant; `every` is in seconds, 0 for by hand; `synced`
    in seconds since 1970, 0 for never; `message` says why the last sync failed. `caller` is who
    added it, as `JobRow.caller`, "" for the operator.
    """

    tenant: str
    user: str
    name: str
    collection: str
    address: str
    options: dict[str, Any] = field(default_factory=dict)
    acl: frozenset[str] = frozenset()
    every: int = 0
    caller: str = ""
    state: str = "new"
    message: str = ""
    synced: float = 0.0
    id: int = 0

    def sent_by(self, auth: AuthContext, key: str) -> None:
        """Note who added it, and with which key, "" for another proof."""
        self.user = auth.user
        self.caller = json.dumps({"auth": auth.model_dump(mode="json"), "key": key})

    def sender(self) -> tuple[AuthContext, str]:
        """Return who added it, and the id of their key; not of the operator's."""
        found: dict[str, Any] = json.loads(self.caller)
        return AuthContext.model_validate(found["auth"]), str(found["key"])

    def describe(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        names = ("name", "collection", "address", "every", "state", "message")
        shown = {name: getattr(self, name) for name in names}
        return {**shown, "acl": sorted(self.acl), "user": self.user, "synced": self.synced or None}


@dataclass(frozen=True)
class ItemRow:
    """Hold one item of a source: its name there, its file, its revision, its bytes' hash."""

    key: str
    file: str
    path: str
    mark: str
    hash: str


COLUMNS = [one.name for one in fields(SourceRow) if one.name != "id"]


class SourceRows(CataloguePart):
    """Keep and find sources and their items."""

    def add(self, row: SourceRow) -> None:
        """Keep a new source; raises CallerError when its owner has one of this name."""
        given = [_to_column(getattr(row, name)) for name in COLUMNS]
        marks = ", ".join("?" * len(COLUMNS))
        with self._database.write() as connection:
            try:
                statement = f"INSERT INTO sources ({', '.join(COLUMNS)}) VALUES ({marks})"
                row.id = connection.execute(statement, given).lastrowid or 0
            except sqlite3.IntegrityError:
                hint = "give another name, or remove that one first"
                raise CallerError(
                    "there is a source of this name", value=row.name, hint=hint
                ) from None
            sign(connection, "sources", "y.id = ?", row.id)

    def find(self, tenant: str, name: str, auth: AuthContext | None = None) -> SourceRow:
        """Return a source of a caller, or of any owner for the operator; raises AbsentError."""
        found = [one for one in self.list_sources(tenant, auth) if one.name == name]
        if not found:
            hint = "`carrel source list` shows those there are"
            raise AbsentError("there is no such source", value=name, hint=hint)
        return found[0]

    def list_sources(self, tenant: str | None, auth: AuthContext | None = None) -> list[SourceRow]:
        """List the sources of a caller; for the operator all of a tenant, None for every one."""
        rows = self._all(
            f"SELECT * FROM sources y WHERE {SOUND} AND (:t IS NULL OR tenant = :t)"
            " AND (:u IS NULL OR user = :u) ORDER BY tenant, user, name",
            {"t": tenant, "u": auth.user if auth else None},
        )
        return [_row(row) for row in rows]

    def due(self, now: float) -> list[SourceRow]:
        """List the sources whose time has come, the longest waiting first."""
        rows = self._all(
            f"SELECT * FROM sources y WHERE {SOUND} AND every > 0 AND synced + every <= ?"
            " ORDER BY synced + every",
            (now,),
        )
        return [_row(row) for row in rows]

    def note(self, row: SourceRow) -> None:
        """Write how the last sync ended; one that was removed meanwhile does not come back."""
        with self._database.write() as connection:
            connection.execute(
                "UPDATE sources SET state = ?, message = ?, synced = ? WHERE id = ?",
                (row.state, row.message, row.synced, row.id),
            )
            sign(connection, "sources", "y.id = ?", row.id)

    def remove(self, row: SourceRow) -> None:
        """Forget a source and what is known of its items; documents stay."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM sources WHERE id = ?", (row.id,))

    def items(self, row: SourceRow) -> dict[str, ItemRow]:
        """Return what a source has brought, by key."""
        query = "SELECT key, file, path, mark, hash FROM source_items WHERE source = ?"
        return {one["key"]: ItemRow(*one) for one in self._all(query, (row.id,))}

    def save_items(self, row: SourceRow, collection_id: int, items: Iterable[ItemRow]) -> None:
        """Write items of a source; all or none."""
        with self._database.write() as connection:
            connection.executemany(
                """INSERT OR REPLACE INTO source_items
                       (source, collection_id, key, file, path, mark, hash)
                   VALUES (?, ?, ?, ?, ?, ?, ?)""",
                [(row.id, collection_id, *astuple(one)) for one in items],
            )

    def drop_items(self, row: SourceRow, keys: Sequence[str]) -> None:
        """Forget items of a source; their files stay."""
        with self._database.write() as connection:
            connection.execute(
                "DELETE FROM source_items WHERE source = ?"
                " AND key IN (SELECT value FROM json_each(?))",
                (row.id, json.dumps(keys)),
            )

    def files(self, row: SourceRow, keys: Sequence[str]) -> list[str]:
        """Return the names under which the collection keeps the files of items."""
        rows = self._all(
            """SELECT f.relative FROM source_items i CROSS JOIN files f
                   ON f.collection_id = i.collection_id AND f.path = i.path
                   AND instr(f.relative, i.file) > 0
               WHERE i.source = ? AND i.key IN (SELECT value FROM json_each(?))""",
            (row.id, json.dumps(keys)),
        )
        return [one[0] for one in rows]


def _to_column(value: object) -> Any:  # noqa: ANN401 - whatever SQLite takes
    if isinstance(value, frozenset):
        value = sorted(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _row(row: sqlite3.Row) -> SourceRow:
    values = {one.name: row[one.name] for one in fields(SourceRow)}
    values["options"] = json.loads(values["options"])
    values["acl"] = frozenset(json.loads(values["acl"]))
    return SourceRow(**values)
