"""Read the truth: collections, documents and chunks, always under a caller's permissions."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from core.auth import AuthContext, checked_name
from core.errors import CallerError, CarrelError, OperatorError
from core.profile import Profile
from core.question import names_of
from core.types import Evidence
from stores.integrity.condition import ROWS_LOST
from stores.sqlite import sums
from stores.sqlite.database import CataloguePart, Database, decoded
from stores.sqlite.permissions import Parameters, permission_filter, shown_id
from stores.sqlite.schema import SECRET
from stores.sqlite.sums import LINK

MAX_VARIABLES = 500  # of one statement: half of what the least generous SQLite takes (999)
MOST_COLLECTIONS = 16  # of one question: each is searched; chosen, not measured
# Answers to "may this caller see anything of that collection?"; chosen, not measured: some 5 MB.
REMEMBERED = 10_000
WITHHELD = (
    "a passage that would have been read is damaged in the catalogue and withheld;"
    " `carrel doctor` names it"
)

_GIVEN = "(SELECT value FROM json_each(:given))"
_NUMBERS = "(SELECT CAST(value AS INTEGER) FROM json_each(:given))"
_CHUNK_COLUMNS = f"""c.chunk_id, c.text, c.section, c.page, c.ordinal, c.kind, c.document, d.key,
    d.source, d.title, d.language, d.version, d.updated_at, d.metadata,
    {sums.SOUND_CHUNK} AS sound"""
_OF_EVIDENCE = (
    *("chunk_id", "document_id", "source", "title", "text", "section", "page", "ordinal", "kind"),
    *("language", "version", "updated_at"),
)


@dataclass(frozen=True)
class Collection:
    """Name one collection of one tenant with its profile; `secret` is of its data directory."""

    id: int
    tenant: str
    name: str
    profile: Profile
    secret: str = field(repr=False)  # what makes ids unpredictable elsewhere


class VisiblePassages(CataloguePart):
    """Answer what exists and what a caller may see."""

    def __init__(self, database: Database) -> None:
        CataloguePart.__init__(self, database)  # which the catalogue has in two ways
        self._seen: tuple[int, dict[tuple[AuthContext, int], bool]] = (-1, {})
        self._lock = threading.Lock()

    def index_version(self) -> int:
        return int(self._value("SELECT value FROM meta WHERE key = 'index_version'"))

    def collections(self, tenant: str | None = None) -> list[Collection]:
        query = f"""SELECT *, {SECRET} AS secret FROM collections
            WHERE :t IS NULL OR tenant = :t ORDER BY tenant, name"""
        return [_collection(row) for row in self._all(query, {"t": tenant})]

    def collection(self, tenant: str, name: str) -> Collection:
        row = self._row(tenant, name)
        if row is None:
            raise self._absent(tenant, name, self.collections(tenant))
        return _sound_collection(row)

    def visible_collection(self, auth: AuthContext, name: str) -> Collection:
        if auth.operator:
            return self.collection(auth.tenant, name)
        row = self._row(auth.tenant, name)
        # One that is absent is looked for as long as one that is hidden.
        is_visible = self._visible(auth, 0 if row is None else row["id"])
        if row is None or not is_visible:
            raise self._absent(
                auth.tenant, name, self.visible_collections(auth), self._awaited(auth, name)
            )
        return _sound_collection(row)

    def collections_named(self, auth: AuthContext, names: str) -> list[Collection]:
        named = names_of(names)
        if len(named) > MOST_COLLECTIONS:
            rule = f"a question is about at most {MOST_COLLECTIONS} collections"
            raise CallerError(rule, value=len(named), hint="name fewer")
        return [self.visible_collection(auth, name) for name in named]

    def _absent(
        self, tenant: str, name: str, known: Iterable[Collection], awaited: bool = False
    ) -> CarrelError:
        if not self._database.condition.lost:
            return absent_collection(tenant, name, known, awaited)
        return OperatorError(
            f"{ROWS_LOST}, perhaps those of this collection",
            value=name,
            hint="run `carrel doctor`, which says what is missing and what to do",
        )

    def visible_collections(self, auth: AuthContext) -> list[Collection]:
        return [one for one in self.collections(auth.tenant) if self._visible(auth, one.id)]

    def _row(self, tenant: str, name: str) -> sqlite3.Row | None:
        checked_name("collection", name)
        query = f"""SELECT o.*, o.sum IS {sums.COLLECTION} AS sound, {SECRET} AS secret
            FROM collections o WHERE o.tenant = ? AND o.name = ?"""
        row: sqlite3.Row | None = self._one(query, (tenant, name))
        return row

    def _visible(self, auth: AuthContext, collection_id: int) -> bool:
        """Tell whether a collection has a document for the caller, be it a damaged one.

        Looking through many documents of others takes long, so the answer is remembered until the
        index changes.
        """
        version, key = self.index_version(), (auth, collection_id)
        with self._lock:
            if self._seen[0] != version:
                self._seen = version, {}
            known = self._seen[1].get(key)
        if known is None:
            condition, parameters = permission_filter(auth, collection_id, with_damaged=True)
            some = f"EXISTS (SELECT 1 FROM documents d WHERE {condition}"
            query = f"SELECT {some} AND d.is_open = 1) OR {some})"  # the index has open ones last
            known = bool(self._value(query, parameters))
            with self._lock:
                if self._seen[0] == version and len(self._seen[1]) < REMEMBERED:
                    self._seen[1][key] = known
        return known

    def _awaited(self, auth: AuthContext, name: str) -> bool:
        """Tell whether an upload of the caller into this collection has still to be ingested."""
        query = """SELECT EXISTS (SELECT 1 FROM jobs WHERE tenant = ? AND user = ?
            AND collection = ? AND kind = 'upload' AND state IN ('waiting', 'running'))"""
        return bool(self._value(query, (auth.tenant, auth.user, name)))

    def visible_documents(
        self, auth: AuthContext, collection_id: int, sources: Sequence[str] = ()
    ) -> set[int]:
        condition, parameters = permission_filter(auth, collection_id, sources, sums=False)
        rows = self._all(f"SELECT d.id FROM documents d WHERE {condition}", parameters)
        return {row[0] for row in rows}

    def evidence(
        self,
        auth: AuthContext,
        collection_id: int,
        chunk_ids: Sequence[str],
        sources: Sequence[str] = (),
    ) -> dict[str, Evidence]:
        which = f"d.id IN (SELECT document FROM chunks WHERE chunk_id IN {_GIVEN})"
        # Without CROSS JOIN, SQLite may visit every chunk of a long document for a few of them.
        chunks = f"chunks c CROSS JOIN d ON d.id = c.document WHERE c.chunk_id IN {_GIVEN}"
        rows = self._permitted(auth, collection_id, which, chunks, chunk_ids, sources)
        found = {row["chunk_id"]: _evidence(row) for row in self._sound(rows)}
        return dict(zip(found, self._with_books(auth, collection_id, found.values()), strict=True))

    def neighbours(
        self, auth: AuthContext, collection_id: int, chunk_id: str, reach: int
    ) -> list[Evidence]:
        condition, parameters = permission_filter(auth, collection_id, sums=False)
        which = "d.id IN (SELECT document FROM chunks WHERE chunk_id = :chunk)"
        rows = self._read(
            f"""{sums.compared_once(f"{which} AND {condition}")}
                SELECT {self._columns(auth, collection_id)} FROM chunks here
                CROSS JOIN chunks c ON c.document = here.document
                    AND c.ordinal BETWEEN here.ordinal - :reach AND here.ordinal + :reach
                CROSS JOIN d ON d.id = c.document
                WHERE here.chunk_id = :chunk ORDER BY c.ordinal""",
            {**parameters, "chunk": chunk_id, "reach": reach},
        )
        found = [_evidence(row) for row in self._sound(rows)]
        return self._with_books(auth, collection_id, found)

    def first_chunks(
        self, auth: AuthContext, collection_id: int, documents: Iterable[int]
    ) -> dict[int, Evidence]:
        chunks = "d CROSS JOIN chunks c ON c.document = d.id AND c.ordinal = 0"
        rows = self._permitted(auth, collection_id, f"d.id IN {_NUMBERS}", chunks, list(documents))
        return {row["document"]: _evidence(row) for row in self._sound(rows)}

    def cards(self, auth: AuthContext, collection_id: int, keys: list[str]) -> list[Evidence]:
        chunks = "d CROSS JOIN chunks c ON c.document = d.id AND c.kind = 'record'"
        rows = self._permitted(auth, collection_id, f"d.key IN {_GIVEN}", chunks, keys)
        return [_evidence(row) for row in self._sound(rows)]

    def full_texts(self, auth: AuthContext, collection_id: int, chunk_id: str) -> list[Evidence]:
        found = self.evidence(auth, collection_id, [chunk_id]).get(chunk_id)
        if found is None:
            return []
        texts = self.texts_of_book(auth, collection_id, found.document_key)
        first = [text["chunk_id"] for text in texts]
        chunks = self.evidence(auth, collection_id, first)
        return [chunks[key] for key in first if key in chunks]

    def books_of_texts(
        self, auth: AuthContext, collection_id: int, keys: Iterable[str]
    ) -> dict[str, dict[str, Any]]:
        condition, parameters = permission_filter(auth, collection_id)
        shown = shown_id(self._database.read(), auth, collection_id)
        rows = self._all(
            f"""SELECT t.key AS text, d.key, {shown} AS document_id, d.title, d.source, d.metadata
                FROM json_each(:keys) wanted CROSS JOIN documents t ON t.key = wanted.value
                CROSS JOIN book_texts b ON b.text = t.id CROSS JOIN documents d ON d.id = b.book
                WHERE {condition} AND b.sum IS {LINK}""",
            {**parameters, "keys": json.dumps(list(dict.fromkeys(keys)))},
        )
        return {row["text"]: _book(row) for row in rows}

    def texts_of_book(
        self, auth: AuthContext, collection_id: int, key: str
    ) -> list[dict[str, Any]]:
        condition, parameters = permission_filter(auth, collection_id)
        shown = shown_id(self._database.read(), auth, collection_id)
        rows = self._all(
            f"""SELECT d.key, {shown} AS document_id, d.title, d.source,
                    (SELECT c.chunk_id FROM chunks c WHERE c.document = d.id
                     ORDER BY c.ordinal LIMIT 1) AS chunk_id
                FROM documents record CROSS JOIN book_texts b ON b.book = record.id
                CROSS JOIN documents d ON d.id = b.text
                WHERE record.key = :key AND {condition} AND b.sum IS {LINK}
                ORDER BY d.document_id""",
            {**parameters, "key": key},
        )
        return [dict(row) for row in rows]

    def _with_books(
        self, auth: AuthContext, collection_id: int, found: Iterable[Evidence]
    ) -> list[Evidence]:
        items = list(found)
        keys = (item.document_key for item in items)
        books = self.books_of_texts(auth.rights, collection_id, keys)
        return [
            item.of_book(books[item.document_key]) if item.document_key in books else item
            for item in items
        ]

    def _permitted(
        self,
        auth: AuthContext,
        collection_id: int,
        which: str,
        chunks: str,
        values: Sequence[object],
        sources: Sequence[str] = (),
    ) -> list[sqlite3.Row]:
        """Return the chunks that `chunks` reads beside `d`, the documents that `which` says.

        Both are SQL of this class, with `_GIVEN` for the values.
        """
        condition, parameters = permission_filter(auth, collection_id, sources, sums=False)
        columns = self._columns(auth, collection_id)
        documents = sums.compared_once(f"{which} AND {condition}")
        given = {**parameters, "given": json.dumps(values)}
        return self._read(f"{documents} SELECT {columns} FROM {chunks}", given)

    def _columns(self, auth: AuthContext, collection_id: int) -> str:
        shown = shown_id(self._database.read(), auth, collection_id)
        return f"{shown} AS document_id, {_CHUNK_COLUMNS}"

    def _read(self, query: str, parameters: Parameters) -> list[sqlite3.Row]:
        """Run a query whose texts may be damaged into bytes that are none."""
        connection = self._database.read()
        try:
            return connection.execute(query, parameters).fetchall()
        except sqlite3.OperationalError as error:
            if "decode" not in str(error):
                raise
        connection.text_factory = decoded
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


def _book(row: sqlite3.Row) -> dict[str, Any]:
    metadata = json.loads(row["metadata"])
    named = {name: row[name] for name in ("key", "document_id", "title", "source")}
    return {**named, "authors": metadata.get("authors") or [], "year": metadata.get("year")}


def absent_collection(
    tenant: str, name: str, known: Iterable[Collection], awaited: bool = False
) -> CallerError:
    """Explain that there is no such collection, whether it is missing or none of the caller's.

    `known` are those that the caller may know of; `awaited` says that the first documents of
    theirs are on the way.
    """
    names = ", ".join(one.name for one in known) or "none yet"
    hint = f"collections of tenant '{tenant}': {names}; make one with `carrel ingest`"
    if awaited:
        hint = f"your upload into it is being ingested: ask again when its job is done; {hint}"
    return CallerError("the collection must exist", value=name, hint=hint)


def damaged_collection(name: str) -> OperatorError:
    """Explain that a collection's row is not what was written."""
    return OperatorError(
        "the profile of a collection is damaged in the catalogue",
        value=name,
        hint="restore a backup, or ingest again with --profile, which writes it again",
    )


def _sound_collection(row: sqlite3.Row) -> Collection:
    if not row["sound"]:
        raise damaged_collection(row["name"])
    return _collection(row)


def _collection(row: sqlite3.Row) -> Collection:
    try:
        profile = Profile.model_validate_json(row["profile"])
    except ValidationError:  # who uses one collection is told; lists go on
        profile = Profile(name="default")
    return Collection(row["id"], row["tenant"], row["name"], profile, row["secret"])


def _evidence(row: sqlite3.Row) -> Evidence:
    return Evidence(
        evidence_id=row["chunk_id"],
        document_key=row["key"],
        metadata=json.loads(row["metadata"]),
        **{name: row[name] for name in _OF_EVIDENCE},
    )
