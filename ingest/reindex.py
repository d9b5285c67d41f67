"""Make the derived indexes anew from the catalogue."""

from __future__ import annotations

import time
from typing import Any

from core.settings import Settings
from ingest.enrich import embedded_text
from ingest.pipeline import Progress
from models.embeddings import Embedder
from stores import fulltext
from stores.store import Store
from stores.writer import keyword_text


def rebuild(
    store: Store, embedder: Embedder, settings: Settings, progress: Progress
) -> dict[str, Any]:
    """Rebuild full text and vectors; texts without a vector of this model are embedded first."""
    started = time.monotonic()
    rows = _rebuild_fulltext(store, progress)
    embedded = _embed_missing(store, embedder, settings, progress)
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress("vectors", done, rows)

    vectors = store.rebuild_vectors(advance)
    return {
        "fts_rows": rows,
        "vectors": vectors,
        "embedded": embedded,
        "seconds": round(time.monotonic() - started, 3),
    }


def _rebuild_fulltext(store: Store, progress: Progress) -> int:
    total = 0
    for collection in store.catalogue.collections():
        with store.database.write() as connection:
            fulltext.drop_table(connection, collection.id)
            fulltext.create_table(connection, collection.id)
            chunks = connection.execute(
                """SELECT c.id, c.section, c.text, d.title, d.language, d.metadata
                   FROM chunks c JOIN documents d ON d.id = c.document
                   WHERE c.collection_id = ? ORDER BY c.id""",
                (collection.id,),
            ).fetchall()
            for done, chunk in enumerate(chunks, start=1):
                parts = (
                    chunk["title"],
                    keyword_text(chunk["metadata"]),
                    chunk["section"],
                    chunk["text"],
                )
                fulltext.insert(connection, collection.id, chunk["id"], parts, chunk["language"])
                if done % 100 == 0 or done == len(chunks):
                    progress(f"text {collection.name}", done, len(chunks))
            total += len(chunks)
    return total


def _embed_missing(store: Store, embedder: Embedder, settings: Settings, progress: Progress) -> int:
    """Embed the chunks that have no vector of this model, a batch at a time."""
    missing = (
        "FROM chunks c JOIN documents d ON d.id = c.document WHERE NOT EXISTS"
        " (SELECT 1 FROM embeddings e WHERE e.content_hash = c.content_hash AND e.model = ?)"
    )
    connection = store.database.read()
    total = connection.execute(f"SELECT count(*) {missing}", (embedder.model_id,)).fetchone()[0]
    done = 0
    while rows := connection.execute(
        f"SELECT DISTINCT c.content_hash, d.title, c.section, c.text {missing} LIMIT ?",
        (embedder.model_id, settings.ingest_batch),
    ).fetchall():
        texts = {
            row["content_hash"]: embedded_text(row["title"], row["section"], row["text"])
            for row in rows
        }
        vectors = embedder.embed_documents(list(texts.values()))
        store.writer.store_vectors(embedder.model_id, dict(zip(texts, vectors, strict=True)))
        done += len(texts)
        progress("embed", done, total)
    return done
