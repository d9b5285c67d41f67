"""The truth of a data directory in a form that two directories can be compared by.

Rows are joined by what they are called, and row ids, times of writing and counters are left out:
ids are never used again, so a document that was taken back and written anew has another one.
Keys of documents and ids of chunks are made with a secret of the directory: they are left out too,
and `faults` makes them again instead. Everything else is compared byte for byte: documents,
readers, fields, chunks, full text, vectors, files, and what is left of the journal and the outbox.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from core.profile import Profile
from ingest.enrich import chunk_id
from stores.catalogue import Collection
from stores.chroma import ChromaVectors
from stores.migrations_ids import SECRET
from stores.rows import document_key
from stores.verify import TOLERANCE

CATALOGUE = "catalogue.sqlite3"
VERIFIED_PENDING = "verified but not yet in Chroma"
LEFT_OUT = {
    "id", "sum", "indexed_at", "created_at", "document", "collection_id", "key", "chunk_id",
}  # fmt: skip
OF_DOCUMENT = {
    "document_acl": "SELECT * FROM document_acl WHERE document = ? ORDER BY principal",
    "record_fields": "SELECT * FROM record_fields WHERE document = ? ORDER BY rowid",
    "chunks": "SELECT * FROM chunks WHERE document = ? ORDER BY ordinal",
    "embeddings": """SELECT DISTINCT e.* FROM chunks c JOIN embeddings e USING (content_hash)
                     WHERE c.document = ? ORDER BY e.content_hash, e.model""",
    "sentences": """SELECT DISTINCT e.* FROM chunks c JOIN sentence_vectors e USING (content_hash)
                    WHERE c.document = ? ORDER BY e.content_hash, e.model""",
}
OF_STORE = {
    "collections": "SELECT tenant, name, profile FROM collections ORDER BY tenant, name",
    "files": """SELECT c.tenant, c.name, f.* FROM files f
                JOIN collections c ON c.id = f.collection_id
                ORDER BY c.tenant, c.name, f.relative""",
    "journal": "SELECT * FROM journal ORDER BY collection_id, document_id",
    "outbox": "SELECT * FROM outbox ORDER BY chunk_id",
    "unused vectors": """SELECT content_hash, model FROM embeddings
                         WHERE content_hash NOT IN (SELECT content_hash FROM chunks)""",
    "unused sentences": """SELECT content_hash, model FROM sentence_vectors
                           WHERE content_hash NOT IN (SELECT content_hash FROM chunks)""",
}


def canonical(data: Path) -> dict[str, str]:
    """Return a hash of each document and of each table, by name; two equal dicts are one truth."""
    with closing(open_truth(data)) as connection:
        found = documents(connection)
        for name, query in OF_STORE.items():
            found[f"table {name}"] = _hash(connection.execute(query).fetchall())
    return found


def documents(connection: sqlite3.Connection) -> dict[str, str]:
    """Return a hash of all that belongs to each document, by tenant, collection and id."""
    found = {}
    query = """SELECT c.tenant, c.name, d.* FROM documents d
               JOIN collections c ON c.id = d.collection_id"""
    for row in connection.execute(query).fetchall():
        parts: list[list[sqlite3.Row]] = [[row]]
        parts += [connection.execute(sql, (row["id"],)).fetchall() for sql in OF_DOCUMENT.values()]
        fts = f"fts_{row['collection_id']}"
        parts.append(
            connection.execute(
                f"""SELECT c.chunk_id, f.title, f.keywords, f.section, f.body
                    FROM chunks c JOIN {fts} f ON f.rowid = c.id
                    WHERE c.document = ? ORDER BY c.ordinal""",
                (row["id"],),
            ).fetchall()
        )
        name = f"{row['tenant']}/{row['name']}/{row['document_id']}"
        found[name] = "".join(_hash(part) for part in parts)
    return found


def differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """Name what is in one alone or differs."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def faults(
    data: Path, model: str, *, finished: bool = False, rebuilding: bool = False
) -> list[str]:
    """Say what is doubled, torn or without an owner; `finished` allows nothing to be pending.

    While the vector index is made anew (`rebuilding`), as it is after a kill, verified documents
    may wait to be in it again: they are in the truth and found by words.
    """
    problems: list[str] = []
    with closing(open_truth(data)) as connection:
        pending = {
            row[0]: row[1] for row in connection.execute("SELECT chunk_id, operation FROM outbox")
        }
        if finished and pending:
            problems.append(f"{len(pending)} changes are left in the outbox")
        doubled = connection.execute(
            """SELECT count(*) FROM (SELECT 1 FROM chunks GROUP BY document, ordinal
               HAVING count(*) > 1 UNION ALL SELECT 1 FROM chunks GROUP BY document, text
               HAVING count(*) > 1)"""
        ).fetchone()[0]
        if doubled:
            problems.append(f"{doubled} chunks are doubled")
        if wrong := _wrong_ids(connection):
            problems.append(f"{wrong} chunks have another id, or a document has, than ingest makes")
        for collection in connection.execute("SELECT id FROM collections").fetchall():
            problems += _faults_of(connection, data, model, collection["id"], pending)
    if rebuilding:
        problems = [line for line in problems if not line.endswith(VERIFIED_PENDING)]
    return problems


def _wrong_ids(connection: sqlite3.Connection) -> int:
    rows = connection.execute(
        f"""SELECT o.tenant, o.name, d.key, d.document_id, d.version, d.content_hash, c.ordinal,
                   c.chunk_id, {SECRET} AS secret
            FROM chunks c JOIN documents d ON d.id = c.document
            JOIN collections o ON o.id = d.collection_id"""
    )
    wrong = 0
    for row in rows:
        place = Collection(0, row["tenant"], row["name"], Profile(name="default"), row["secret"])
        named, hashed = row["document_id"], row["content_hash"]
        made = chunk_id(place, named, row["version"], hashed, row["ordinal"])
        wrong += (row["key"], row["chunk_id"]) != (document_key(place, named), made)
    return wrong


def _faults_of(
    connection: sqlite3.Connection,
    data: Path,
    model: str,
    collection_id: int,
    pending: dict[str, str],
) -> list[str]:
    rows = connection.execute(
        """SELECT c.chunk_id, c.id, c.document, d.document_id, e.vector,
                  EXISTS (SELECT 1 FROM journal j WHERE j.collection_id = c.collection_id
                          AND j.document_id = d.document_id) AS waiting
           FROM chunks c JOIN documents d ON d.id = c.document
           LEFT JOIN embeddings e ON e.content_hash = c.content_hash AND e.model = ?
           WHERE c.collection_id = ?""",
        (model, collection_id),
    ).fetchall()
    indexed = Counter(
        row[0] for row in connection.execute(f"SELECT rowid FROM fts_{collection_id}")
    )
    problems = []
    if indexed != Counter(row["id"] for row in rows):
        problems.append("the full text has other rows than the chunks")
    stored = _vectors(data, model, collection_id)
    owned = {row["chunk_id"] for row in rows}
    if orphans := [key for key in stored if key not in owned and pending.get(key) != "delete"]:
        problems.append(f"{len(orphans)} vectors have no chunk")
    for row in rows:
        key = row["chunk_id"]
        if row["vector"] is None and not row["waiting"]:
            problems.append(f"{row['document_id']}: verified without a vector")
        elif key not in pending and not _same(row, stored.get(key)):
            problems.append(f"{row['document_id']}: not in Chroma as it is, and not pending")
        elif key in pending and not row["waiting"] and pending[key] == "upsert":
            problems.append(f"{row['document_id']}: {VERIFIED_PENDING}")
    return problems


def _same(row: sqlite3.Row, found: tuple[Any, int] | None) -> bool:
    if found is None or found[1] != row["document"]:
        return False
    return bool(np.abs(np.frombuffer(row["vector"], dtype="<f4") - found[0]).max() <= TOLERANCE)


def _vectors(data: Path, model: str, collection_id: int) -> dict[str, tuple[Any, int]]:
    if not (data / "chroma").exists():
        return {}
    chroma = ChromaVectors(data / "chroma", model, batch=500)
    try:
        return chroma.stored(collection_id, None)
    finally:
        chroma.close()


def open_truth(data: Path) -> sqlite3.Connection:
    """Open the catalogue behind the application's back."""
    connection = sqlite3.connect(data / CATALOGUE)
    connection.row_factory = sqlite3.Row
    return connection


def _hash(rows: list[sqlite3.Row]) -> str:
    kept = [[(key, row[key]) for key in row.keys() if key not in LEFT_OUT] for row in rows]  # noqa: SIM118
    return hashlib.sha256(repr(kept).encode("utf-8", "surrogatepass")).hexdigest()[:16]
