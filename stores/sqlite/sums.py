"""Check sums of the rows of the truth: SQLite does not notice a changed byte inside a value.

The sums are computed by SQLite itself through `row_sum`, from what is stored, so that a writer only
has to call `sign` after its last change of a row. Aliases in the SQL: d
documents, c chunks, e embeddings, s sentence_vectors, o collections, k api_keys.
"""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field

FUNCTION = "row_sum"


def row_sum(*values: bytes | str | int | float | None) -> int:
    """Return the CRC-32 of values with their types and lengths."""
    parts = []
    for value in values:
        if value is None:
            parts.append(b"n")
        elif isinstance(value, int):
            parts.append(b"i%d;" % value)
        elif isinstance(value, float):
            parts.append(b"f" + struct.pack("<d", value))
        else:
            data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
            parts += (b"b%d:" % len(data), data)
    return zlib.crc32(b"".join(parts))


def register(connection: sqlite3.Connection) -> None:
    """Let SQL on this connection use `row_sum`."""
    connection.create_function(FUNCTION, -1, row_sum, deterministic=True)


def sum_of(alias: str, texts: str, others: str = "", *more: str) -> str:
    """Return the SQL of a row's sum; texts go as bytes, for a damaged one may be no text."""
    columns = [f"CAST({alias}.{name} AS BLOB)" for name in texts.split()]
    columns += [f"{alias}.{name}" for name in others.split()]
    return f"{FUNCTION}({', '.join([*columns, *more])})"


# Sums of sums, as rows that belong to a document have no order of their own.
_ACL_ROW, _FIELD_ROW = (
    sum_of("a", "principal"),
    sum_of("f", "name value folded", "collection_id number"),
)
_ACL = f"(SELECT coalesce(sum({_ACL_ROW}), 0) FROM document_acl a WHERE a.document = d.id)"
_FIELDS = f"(SELECT coalesce(sum({_FIELD_ROW}), 0) FROM record_fields f WHERE f.document = d.id)"
DOCUMENT = sum_of(
    "d",
    "key tenant document_id file source title format language version updated_at content_hash"
    " metadata",
    "collection_id is_record is_open",
    _ACL,
    _FIELDS,
)
CHUNK = sum_of(
    "c",
    "chunk_id text kind section content_hash context",
    "document collection_id ordinal page tokens",
)
VECTOR = sum_of("e", "content_hash model", "vector")
SENTENCES = sum_of("s", "content_hash model", "vectors")
COLLECTION = sum_of("o", "tenant name profile", "id")
KEY = sum_of(
    "k", "id digest tenant user roles created_at expires_at revoked_at scope", "rate tokens_per_day"
)

# What is read in place of the column: NULL where the row is not what was written.
SOUND_VECTOR = f"CASE WHEN e.sum = {VECTOR} THEN e.vector END"
SOUND_SENTENCES = f"CASE WHEN s.sum = {SENTENCES} THEN s.vectors END"
# 1 for what may become evidence, else 0; d is what `compared_once` gives.
SOUND_CHUNK = f"(c.sum IS {CHUNK} AND d.whole)"


def compared_once(which: str) -> str:
    """Return the SQL of a WITH whose d are the documents that `which` says, with `whole`.

    However many chunks are read of a document, its many fields are compared with its sum once.
    """
    return (
        f"WITH d AS MATERIALIZED (SELECT d.*, d.sum IS {DOCUMENT} AS whole"
        f" FROM documents d WHERE {which})"
    )


RUN = sum_of(
    "r", "run_id tenant user collection question pipeline created_at result trail", "index_version"
)
OPINION = sum_of("n", "run_id tenant user rating comment created_at", "id")
CONVERSATION = sum_of(
    "v", "id tenant user collection title created_at updated_at checkpoint_id waiting"
)
TURN = sum_of("t", "conversation run_id question created_at clarification reply", "id")
NOTE = sum_of(
    "m",
    "note_id tenant owner content context keywords tags language subject value provenance"
    " conversation run_id documents observed_at created_at changed_at",
    "id replaces importance",
)
JOB = sum_of(
    "j",
    "id kind tenant user collection name roles state error notes caller created_at updated_at",
    "number bytes attempts documents chunks",
)
SOURCE = sum_of(
    "y", "tenant user name collection address options acl caller state message", "id every synced"
)
FILE = sum_of("f", "relative path fingerprint failures", "collection_id")
LINK = sum_of("b", "rule", "text book collection_id")
ALIAS = sum_of("k", "kind stored alias", "collection_id")
TREE = sum_of("w", "recipe shape", "document collection_id vectors centre tokens")

# Every table with a sum: its alias in SQL, and the sum's SQL.
SUMS = {
    "documents": ("d", DOCUMENT),
    "chunks": ("c", CHUNK),
    "embeddings": ("e", VECTOR),
    "sentence_vectors": ("s", SENTENCES),
    "collections": ("o", COLLECTION),
    "api_keys": ("k", KEY),
    "runs": ("r", RUN),
    "feedback": ("n", OPINION),
    "conversations": ("v", CONVERSATION),
    "conversation_turns": ("t", TURN),
    "notes": ("m", NOTE),
    "jobs": ("j", JOB),
    "sources": ("y", SOURCE),
    "files": ("f", FILE),
    "book_texts": ("b", LINK),
    "aliases": ("k", ALIAS),
    "tree_documents": ("w", TREE),
}
# What nobody can say of whom it speaks, once it is damaged.
TRACES = ("runs", "feedback", "conversation_turns", "conversations", "notes", "jobs", "sources")
VECTORS = ("embeddings", "sentence_vectors")
# What the next ingest makes again, or the next `tree build`.
DERIVED = ("files", "book_texts", "aliases", "tree_documents")


def damaged_rows(table: str) -> str:
    """Return what follows FROM in the SQL of the rows of a table that do not have their sums."""
    alias, own = SUMS[table]
    return f"{table} AS {alias} WHERE {alias}.sum IS NOT {own}"


@dataclass(frozen=True)
class Damage:
    """Hold the rows that are not what was written: documents by row id, others by their names.

    `vectors` are text hashes and models, of texts and of sentences alike; `records` are counts of
    damaged rows of `TRACES` and `DERIVED`, by table.
    """

    documents: dict[int, str] = field(default_factory=dict)
    chunks: list[str] = field(default_factory=list)
    vectors: set[tuple[str, str]] = field(default_factory=set)
    collections: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    records: dict[str, int] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        """Tell whether any row is damaged."""
        return self != Damage()


def sign(connection: sqlite3.Connection, table: str, where: str, *values: object) -> None:
    """Sign the rows of a table that `where` says, after the last change of them."""
    alias, own = SUMS[table]
    connection.execute(f"UPDATE {table} AS {alias} SET sum = {own} WHERE {where}", values)


def sign_documents(connection: sqlite3.Connection, documents: Iterable[int]) -> None:
    """Sign documents by row id, with their access lists, fields and chunks."""
    for row_id in documents:
        sign(connection, "documents", "d.id = ?", row_id)
        sign(connection, "chunks", "c.document = ?", row_id)


def find_damage(connection: sqlite3.Connection) -> Damage:
    """Compare every row with its sum; about 0.1 s for 10,000 chunks."""

    def names(table: str, *columns: str) -> list[tuple[str, ...]]:
        shown = ", ".join(f"CAST({column} AS BLOB)" for column in columns)
        rows = connection.execute(f"SELECT {shown} FROM {damaged_rows(table)}")
        return [tuple((value or b"").decode("utf-8", "replace") for value in row) for row in rows]

    vectors = (names(table, "content_hash", "model") for table in VECTORS)
    return Damage(
        documents={int(row_id): name for row_id, name in names("documents", "id", "document_id")},
        chunks=[name for (name,) in names("chunks", "chunk_id")],
        vectors={(key, model) for found in vectors for key, model in found},
        collections=[name for (name,) in names("collections", "name")],
        keys=[name for (name,) in names("api_keys", "id")],
        records=find_damaged_records(connection),
    )


def find_damaged_records(connection: sqlite3.Connection) -> dict[str, int]:
    """Count the damaged rows of `TRACES` and `DERIVED` by table, of those that have any."""
    found = {}
    for table in (*TRACES, *DERIVED):
        query = f"SELECT count(*) FROM {damaged_rows(table)}"
        if count := int(connection.execute(query).fetchone()[0]):
            found[table] = count
    return found


def drop_damaged(connection: sqlite3.Connection, *tables: str) -> int:
    """Delete the damaged rows of these tables within a transaction; return how many."""
    return sum(
        connection.execute(f"DELETE FROM {damaged_rows(table)}").rowcount for table in tables
    )
