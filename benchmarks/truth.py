"""The truth of a data directory in a form that two directories can be compared by.

Rows are joined by what they are called, and row ids, times of writing and counters are left out:
ids are never used again, so a document that was taken back and written again has another one.
Keys of documents and ids of chunks are made with a secret of the directory: they are left out too,
and `faults` makes them again instead. Everything else is compared byte for byte: documents,
readers, fields, chunks, full text, vectors, files, and what is left of the journal.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

from core.profile import Profile
from ingest.enrich import chunk_id
from stores.sqlite.catalogue import Collection
from stores.sqlite.rows import document_key
from stores.sqlite.schema import SECRET

CATALOGUE = "catalogue.sqlite3"
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


def faults(data: Path, model: str) -> list[str]:
    """Say what is doubled, torn or without an owner."""
    problems: list[str] = []
    with closing(open_truth(data)) as connection:
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
            problems += _faults_of(connection, model, collection["id"])
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


def _faults_of(connection: sqlite3.Connection, model: str, collection_id: int) -> list[str]:
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
    for row in rows:
        if row["vector"] is None and not row["waiting"]:
            problems.append(f"{row['document_id']}: verified without a vector")
    return problems


def open_truth(data: Path) -> sqlite3.Connection:
    """Open the catalogue behind the application's back."""
    connection = sqlite3.connect(data / CATALOGUE)
    connection.row_factory = sqlite3.Row
    return connection


def _hash(rows: list[sqlite3.Row]) -> str:
    kept = [[(key, row[key]) for key in row.keys() if key not in LEFT_OUT] for row in rows]  # noqa: SIM118
    return hashlib.sha256(repr(kept).encode("utf-8", "surrogatepass")).hexdigest()[:16]
