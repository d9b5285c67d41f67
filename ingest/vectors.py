"""Embed the texts of chunks, for the pipeline and for a rebuild alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ingest.enrich import embedded_text
from models.embeddings import Embedder, Vectors
from stores.store import Store

Advance = Callable[[int, int], None]


def passage_vectors(embedder: Embedder, texts: Mapping[str, str]) -> dict[str, Vectors]:
    """Return the vector of each text, by its hash.

    All passages of a collection pass here, so an embedder that gives vectors of sentences in the
    same run of the model has one place to be called from.
    """
    vectors = embedder.embed_documents(list(texts.values()))
    return dict(zip(texts, vectors, strict=True))


def embed_missing(
    store: Store,
    embedder: Embedder,
    batch: int,
    advance: Advance,
    collection_id: int | None = None,
) -> int:
    """Embed the chunks that have no vector of this model, and return how many texts that were.

    Of one collection, or of all. Every batch is kept at once, so an interruption costs one.
    """
    missing = (
        "FROM chunks c JOIN documents d ON d.id = c.document"
        " WHERE c.id > :last AND (:collection IS NULL OR c.collection_id = :collection)"
        " AND NOT EXISTS (SELECT 1 FROM embeddings e"
        " WHERE e.content_hash = c.content_hash AND e.model = :model)"
    )
    connection = store.database.read()
    bound = {"last": 0, "collection": collection_id, "model": embedder.model_id, "batch": batch}
    total = connection.execute(
        f"SELECT count(DISTINCT c.content_hash) {missing}", bound
    ).fetchone()[0]
    done = 0
    while rows := connection.execute(
        f"SELECT c.id, c.content_hash, d.title, c.section, c.text, c.context {missing}"
        " ORDER BY c.id LIMIT :batch",
        bound,
    ).fetchall():
        texts = {
            row["content_hash"]: embedded_text(
                row["title"], row["section"], row["text"], row["context"]
            )
            for row in rows
        }
        store.writer.store_vectors(embedder.model_id, passage_vectors(embedder, texts))
        bound["last"] = rows[-1]["id"]
        done += len(texts)
        advance(done, total)
    return done
