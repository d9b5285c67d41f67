"""Who writes, and what they may replace or remove: the one check of every change of documents.

`stores.writer` and `stores.batches` ask it within the transaction that changes something. It also
chooses the names under which a writer's documents are kept, so that the check never has to refuse:
what is hidden from them keeps its name, and theirs is kept beside it under an alias.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import count
from pathlib import Path

from core.auth import AuthContext
from core.errors import InUseError
from stores.id_secret import SECRET
from stores.sqlite.aliases import alias_of, stored_names
from stores.sqlite.permissions import Parameters, permission_filter

MARK_BYTES = 4  # of the mark that makes a name another one; nobody else may guess it


@dataclass(frozen=True)
class WriteAccess:
    """Decide what a writer may replace or remove, and under which names they write.

    Without `auth` it is the operator, who may change all of a tenant. Anybody else may change what
    they may see, be it damaged or not, and what was made of `upload`, the real path of the file
    that is being ingested: its readers may be others.
    """

    auth: AuthContext | None = None
    upload: str = ""
    marked: dict[str, str] = field(default_factory=dict, repr=False)  # names chosen so far

    def check_document(
        self, connection: sqlite3.Connection, collection_id: int, row_id: int
    ) -> None:
        """Raise InUseError for a document that the writer may not change."""
        if self.auth is None:
            return
        allowed, parameters = self._allowed(self.auth, collection_id)
        query = f"SELECT 1 FROM documents d WHERE d.id = :row AND {allowed}"
        if connection.execute(query, {**parameters, "row": row_id}).fetchone() is None:
            raise _refused()

    def check_file(self, connection: sqlite3.Connection, collection_id: int, name: str) -> None:
        """Raise InUseError for a file with a document that the writer may not change."""
        if not self.may_change_file(connection, collection_id, name):
            raise _refused()

    def may_change_file(
        self, connection: sqlite3.Connection, collection_id: int, name: str
    ) -> bool:
        """Tell whether the writer may change all documents of a file."""
        if self.auth is None or self._made(connection, collection_id, [name]):
            return True
        allowed, parameters = self._allowed(self.auth, collection_id)
        query = f"""SELECT 1 FROM documents d WHERE d.collection_id = :p_collection
            AND d.file = :name AND NOT {allowed} LIMIT 1"""
        return connection.execute(query, {**parameters, "name": name}).fetchone() is None

    def file_name(self, connection: sqlite3.Connection, collection_id: int, name: str) -> str:
        """Return the name under which a file that its writer calls `name` is kept.

        It is that of the file which they know by this name, else the name itself where it is free,
        else one of its own.
        """
        if self.auth is None:
            return name
        others = stored_names(connection, collection_id, "file", name)
        own = not alias_of(connection, collection_id, "file", name)
        known = [name, *others] if own else others
        if made := self._made(connection, collection_id, known):
            return made
        filled = [one for one in known if _documents(connection, collection_id, one)]
        for one in filled:
            if self.may_change_file(connection, collection_id, one):
                return one
        if own and name not in filled and not _is_there(connection, collection_id, name):
            return name
        free = next((one for one in others if one not in filled), "")
        return free or self._marked(connection, collection_id, self.auth, name)

    def document_id(
        self, connection: sqlite3.Connection, collection_id: int, file: str, name: str
    ) -> str:
        """Return the id under which a document of a file, which calls it `name`, is kept.

        It is chosen like the name of a file; of several, the one that comes from this file.
        """
        if self.auth is None:
            return name
        allowed, parameters = self._allowed(self.auth, collection_id)
        names = [name, *stored_names(connection, collection_id, "document", name)]
        rows = connection.execute(
            f"""SELECT d.document_id, {allowed} AS allowed FROM documents d
                WHERE d.collection_id = :p_collection
                AND d.document_id IN (SELECT value FROM json_each(:names))
                ORDER BY d.file = :file DESC, d.document_id <> :name, d.document_id""",
            {**parameters, "names": json.dumps(names), "file": file, "name": name},
        ).fetchall()
        taken = bool(alias_of(connection, collection_id, "document", name))
        for row in rows:
            if row["allowed"] and not (taken and row["document_id"] == name):
                return str(row["document_id"])
        if not any(row["document_id"] == name for row in rows):
            return name
        return self._marked(connection, collection_id, self.auth, name)

    def _allowed(self, auth: AuthContext, collection_id: int) -> tuple[str, Parameters]:
        condition, parameters = permission_filter(auth, collection_id, with_damaged=True)
        if not self.upload:
            return f"({condition})", parameters
        made = """d.collection_id = :p_collection AND EXISTS (SELECT 1 FROM files f
            WHERE f.collection_id = d.collection_id AND f.relative = d.file AND f.path = :upload)"""
        return f"(({condition}) OR ({made}))", {**parameters, "upload": self.upload}

    def _made(self, connection: sqlite3.Connection, collection_id: int, names: list[str]) -> str:
        """Return which of these files the upload has made, "" for none."""
        if not self.upload:
            return ""
        row = connection.execute(
            """SELECT relative FROM files WHERE collection_id = ? AND path = ?
               AND relative IN (SELECT value FROM json_each(?))""",
            (collection_id, self.upload, json.dumps(names)),
        ).fetchone()
        return row[0] if row else ""

    def _marked(
        self, connection: sqlite3.Connection, collection_id: int, auth: AuthContext, name: str
    ) -> str:
        """Return another name: the same one in one ingest, and in the next when it is free again.

        Else ids that follow from it would change with every upload, but those of a free name not.
        """
        if name not in self.marked:
            secret = connection.execute(f"SELECT {SECRET}").fetchone()[0].encode()
            for number in count():
                of = json.dumps([auth.tenant, auth.user, name, number])
                mark = blake2b(of.encode(), key=secret, digest_size=MARK_BYTES).hexdigest()
                if not _is_taken(connection, collection_id, f"{name} ({mark})"):
                    break
            self.marked[name] = f"{name} ({mark})"
        return self.marked[name]


OPERATOR = WriteAccess()


def _documents(connection: sqlite3.Connection, collection_id: int, file: str) -> bool:
    query = "SELECT 1 FROM documents WHERE collection_id = ? AND file = ? LIMIT 1"
    return connection.execute(query, (collection_id, file)).fetchone() is not None


def _is_taken(connection: sqlite3.Connection, collection_id: int, name: str) -> bool:
    query = """SELECT EXISTS (SELECT 1 FROM documents
            WHERE collection_id = :c AND (document_id = :name OR file = :name))
        OR EXISTS (SELECT 1 FROM files WHERE collection_id = :c AND relative = :name)"""
    given = {"c": collection_id, "name": name}
    return bool(connection.execute(query, given).fetchone()[0])


def _is_there(connection: sqlite3.Connection, collection_id: int, file: str) -> bool:
    """Tell whether a file without documents is on the disk, where the operator has it."""
    query = "SELECT path FROM files WHERE collection_id = ? AND relative = ?"
    row = connection.execute(query, (collection_id, file)).fetchone()
    return row is not None and Path(row[0]).exists()


def _refused() -> InUseError:
    # Names are chosen so that this is not met; it says nothing of what is there.
    return InUseError("the collection was changed meanwhile", hint="send it again")
