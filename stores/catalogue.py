"""Read the truth: collections, documents and chunks, always under a caller's permissions."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from core.auth import AuthContext, checked_name
from core.errors import CallerError, OperatorError
from core.profile import Profile
from core.types import Evidence
from stores import sums
from stores.book_lookup import books_of_texts, texts_of_book
from stores.database import Database
from stores.permissions import Parameters, permission_filter

MAX_VARIABLES = 500
WITHHELD = (
    "a passage that would have been read is damaged in the catalogue and withheld;"
    " `carrel doctor` names it"
)

_CHUNK_COLUMNS = (
    """c.chunk_id, c.text, c.section, c.page, c.ordinal, c.kind, c.document,
    d.key, d.document_id, d.source, d.title, d.language, d.version, d.updated_at, d.metadata,
    """
    + sums.SOUND_CHUNK
    + " AS sound"
)


@dataclass(frozen=True)
class Collection:
    """Name one collection of one tenant with its profile."""

    id: int
    tenant: str
    name: str
    profile: Profile


class Catalogue:
    """Answer what exists and what a caller may see."""

    def __init__(self, database: Database) -> None:
        """Read from `database`."""
        self._database = database

    def index_version(self) -> int:
        """Return the number that grows with every change of the index."""
        row = (
            self._database.read()
            .execute("SELECT value FROM meta WHERE key = 'index_version'")
            .fetchone()
        )
        return int(row[0])

    def collections(self, tenant: str | None = None) -> list[Collection]:
        """List the collections of one tenant, or all of them."""
        rows = self._database.read().execute(
            "SELECT * FROM collections WHERE :t IS NULL OR tenant = :t ORDER BY tenant, name",
            {"t": tenant},
        )
        return [_collection(row) for row in rows]

    def collection(self, tenant: str, name: str) -> Collection:
        """Return one collection, or say which ones the tenant has."""
        checked_name("collection", name)
        row = (
            self._database.read()
            .execute(
                f"""SELECT o.*, o.sum IS {sums.COLLECTION} AS sound FROM collections o
                    WHERE o.tenant = ? AND o.name = ?""",
                (tenant, name),
            )
            .fetchone()
        )
        if row is None:
            names = ", ".join(c.name for c in self.collections(tenant)) or "none yet"
            raise CallerError(
                "the collection must exist",
                value=name,
                hint=f"collections of tenant '{tenant}': {names}; make one with `carrel ingest`",
            )
        if not row["sound"]:
            raise damaged_collection(name)
        return _collection(row)

    def visible_documents(
        self, auth: AuthContext, collection_id: int, sources: Sequence[str] = ()
    ) -> set[int]:
        """Return the row ids of all documents the caller may see."""
        condition, parameters = permission_filter(auth, collection_id, sources)
        rows = self._database.read().execute(
            f"SELECT d.id FROM documents d WHERE {condition}",  # bound parameters
            parameters,
        )
        return {row[0] for row in rows}

    def evidence(
        self,
        auth: AuthContext,
        collection_id: int,
        chunk_ids: Sequence[str],
        sources: Sequence[str] = (),
    ) -> dict[str, Evidence]:
        """Return the chunks of these ids that the caller may see, by id; others are left out.

        `sources` are the patterns of a tool's scope, empty for all.
        """
        # Without CROSS JOIN, SQLite may visit every document of the tenant for a few chunks.
        tables = "chunks c CROSS JOIN documents d ON d.id = c.document"
        rows = self._permitted(auth, collection_id, tables, "c.chunk_id", chunk_ids, sources)
        found = {row["chunk_id"]: _evidence(row) for row in self._sound(rows)}
        return dict(zip(found, self._with_books(auth, collection_id, found.values()), strict=True))

    def neighbours(
        self, auth: AuthContext, collection_id: int, chunk_id: str, reach: int
    ) -> list[Evidence]:
        """Return a chunk and up to `reach` chunks on either side, in reading order."""
        condition, parameters = permission_filter(auth, collection_id)
        rows = self._read(
            f"""SELECT {_CHUNK_COLUMNS} FROM chunks here
                CROSS JOIN chunks c ON c.document = here.document
                    AND c.ordinal BETWEEN here.ordinal - :reach AND here.ordinal + :reach
                CROSS JOIN documents d ON d.id = c.document
                WHERE here.chunk_id = :chunk AND {condition} ORDER BY c.ordinal""",
            {**parameters, "chunk": chunk_id, "reach": reach},
        )
        found = [_evidence(row) for row in self._sound(rows)]
        return self._with_books(auth, collection_id, found)

    def first_chunks(
        self, auth: AuthContext, collection_id: int, documents: Iterable[int]
    ) -> dict[int, Evidence]:
        """Return the first chunk of each document row id the caller may see."""
        tables = "documents d CROSS JOIN chunks c ON c.document = d.id AND c.ordinal = 0"
        rows = self._permitted(auth, collection_id, tables, "d.id", list(documents))
        return {row["document"]: _evidence(row) for row in self._sound(rows)}

    def full_texts(self, auth: AuthContext, collection_id: int, chunk_id: str) -> list[Evidence]:
        """Return the first chunk of each full text of the book that a record's chunk belongs to."""
        found = self.evidence(auth, collection_id, [chunk_id]).get(chunk_id)
        if found is None:
            return []
        reader = self._database.read()
        texts = texts_of_book(reader, auth, collection_id, found.document_key)
        first = [text["chunk_id"] for text in texts]
        chunks = self.evidence(auth, collection_id, first)
        return [chunks[key] for key in first if key in chunks]

    def _with_books(
        self, auth: AuthContext, collection_id: int, found: Iterable[Evidence]
    ) -> list[Evidence]:
        """Let chunks of full texts say in their metadata which book they are from."""
        items = list(found)
        reader = self._database.read()
        books = books_of_texts(reader, auth, collection_id, (i.document_key for i in items))
        return [
            item.of_book(books[item.document_key]) if item.document_key in books else item
            for item in items
        ]

    def _permitted(
        self,
        auth: AuthContext,
        collection_id: int,
        tables: str,
        column: str,
        values: Sequence[object],
        sources: Sequence[str] = (),
    ) -> Iterator[sqlite3.Row]:
        """Yield the chunks whose `column` has one of the values (both are SQL of this class)."""
        condition, parameters = permission_filter(auth, collection_id, sources)
        for start in range(0, len(values), MAX_VARIABLES):
            part = values[start : start + MAX_VARIABLES]
            marks = ", ".join(f":v{i}" for i in range(len(part)))
            bound = {**parameters, **{f"v{i}": value for i, value in enumerate(part)}}
            yield from self._read(
                f"SELECT {_CHUNK_COLUMNS} FROM {tables}"
                f" WHERE {column} IN ({marks}) AND {condition}",
                bound,
            )

    def _read(self, query: str, parameters: Parameters) -> list[sqlite3.Row]:
        """Run a query whose texts may be damaged into bytes that are none."""
        connection = self._database.read()
        try:
            return connection.execute(query, parameters).fetchall()
        except sqlite3.OperationalError as error:
            if "decode" not in str(error):
                raise
        connection.text_factory = _decoded
        try:
            return connection.execute(query, parameters).fetchall()
        finally:
            connection.text_factory = str

    def _sound(self, rows: Iterable[sqlite3.Row]) -> Iterator[sqlite3.Row]:
        """Yield the rows that are what was written, and note the others."""
        for row in rows:
            if row["sound"]:
                yield row
            else:
                self._database.condition.report(f"chunk {row['chunk_id']}", WITHHELD)

    def languages(self, collection_id: int) -> frozenset[str]:
        """Return the languages of a collection's documents."""
        rows = self._database.read().execute(
            "SELECT DISTINCT language FROM documents WHERE collection_id = ?", (collection_id,)
        )
        return frozenset(row[0] for row in rows)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def damaged_collection(name: str) -> OperatorError:
    """Explain that a collection's row is not what was written."""
    return OperatorError(
        "the profile of a collection is damaged in the catalogue",
        value=name,
        hint="restore a backup, or ingest again with --profile, which writes it anew",
    )


def _collection(row: sqlite3.Row) -> Collection:
    try:
        profile = Profile.model_validate_json(row["profile"])
    except ValidationError:  # who uses one collection is told; lists go on
        profile = Profile(name="default")
    return Collection(id=row["id"], tenant=row["tenant"], name=row["name"], profile=profile)


def _evidence(row: sqlite3.Row) -> Evidence:
    return Evidence(
        evidence_id=row["chunk_id"],
        chunk_id=row["chunk_id"],
        document_id=row["document_id"],
        document_key=row["key"],
        source=row["source"],
        title=row["title"],
        text=row["text"],
        section=row["section"],
        page=row["page"],
        ordinal=row["ordinal"],
        kind=row["kind"],
        language=row["language"],
        version=row["version"],
        updated_at=row["updated_at"],
        metadata=json.loads(row["metadata"]),
    )
