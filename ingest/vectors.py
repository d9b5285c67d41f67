"""Embed the texts of chunks, for the pipeline and for a rebuild alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from core.language.sentences import sentence_spans
from ingest.enrich import embedded_keywords, embedded_parts, embedded_title
from models.embeddings import Embedder, SpanEmbedder, Vectors
from stores.aliases import GIVEN_ID
from stores.store import Store

Advance = Callable[[int, int], None]


@dataclass(frozen=True)
class Passage:
    """Hold a text to embed; a chunk's own text stands in it from `start` for `length`."""

    text: str
    start: int
    length: int
    language: str

    @classmethod
    def of(
        cls, title: str, section: str, text: str, context: str, keywords: str, language: str
    ) -> Passage:
        """Put a chunk under its headings and keywords and before its context."""
        full, start = embedded_parts(title, section, text, context, keywords)
        return cls(full, start, len(text), language)

    def sentences(self) -> list[tuple[int, int]]:
        """Locate the sentences of the chunk; none when it is one and nothing is around it."""
        own = self.text[self.start : self.start + self.length]
        spans = sentence_spans(own)
        if len(spans) < 2 and len(own) == len(self.text):
            return []
        return [(self.start + begin, self.start + end) for begin, end in spans]


class Embedded(NamedTuple):
    """Hold vectors by text hash, and int8 vectors of sentences where the model gives them."""

    vectors: dict[str, Vectors]
    sentences: dict[str, Vectors]


def passage_vectors(embedder: Embedder, passages: Mapping[str, Passage]) -> Embedded:
    """Return the vector of each passage and of its sentences, in one run of the model.

    Of a model that tells sentences apart every passage gets an array, without rows where the model
    does not serve its language.
    """
    if not isinstance(embedder, SpanEmbedder):
        rows = embedder.embed_documents([passage.text for passage in passages.values()])
        return Embedded(dict(zip(passages, rows, strict=True)), {})
    served = embedder.languages
    spans = {
        key: passage.sentences() if served is None or passage.language in served else []
        for key, passage in passages.items()
    }
    texts = [passage.text for passage in passages.values()]
    rows, parts = embedder.embed_passages(texts, list(spans.values()))
    return Embedded(dict(zip(passages, rows, strict=True)), dict(zip(passages, parts, strict=True)))


def embed_missing(
    store: Store,
    embedder: Embedder,
    batch: int,
    advance: Advance,
    collection_id: int | None = None,
) -> int:
    """Embed the chunks that have no vector of this model, and return how many texts that were.

    So are those without vectors of sentences, where the model gives them; of one collection, or of
    all. Every batch is kept at once, so an interruption costs one.
    """
    missing = (
        "FROM chunks c JOIN documents d ON d.id = c.document"
        " WHERE c.id > :last AND (:collection IS NULL OR c.collection_id = :collection)"
        " AND (NOT EXISTS (SELECT 1 FROM embeddings e"
        " WHERE e.content_hash = c.content_hash AND e.model = :model)"
        " OR (:telling AND NOT EXISTS (SELECT 1 FROM sentence_vectors s"
        " WHERE s.content_hash = c.content_hash AND s.model = :model)))"
    )
    connection = store.database.read()
    bound = {
        "last": 0,
        "collection": collection_id,
        "model": embedder.model_id,
        "batch": batch,
        "telling": isinstance(embedder, SpanEmbedder),
    }
    total = connection.execute(
        f"SELECT count(DISTINCT c.content_hash) {missing}", bound
    ).fetchone()[0]
    done = 0
    while rows := connection.execute(
        "SELECT c.id, c.content_hash, d.title, c.section, c.text, c.context, d.language,"
        f" {GIVEN_ID} AS document_id, d.metadata, c.ordinal"
        f" {missing}"
        " ORDER BY c.id LIMIT :batch",
        bound,
    ).fetchall():
        passages = {
            row["content_hash"]: Passage.of(
                embedded_title(row["title"], row["document_id"]),
                row["section"],
                row["text"],
                row["context"],
                embedded_keywords(json.loads(row["metadata"]), row["ordinal"]),
                row["language"],
            )
            for row in rows
        }
        embedded = passage_vectors(embedder, passages)
        store.writer.store_vectors(embedder.model_id, embedded.vectors, embedded.sentences)
        bound["last"] = rows[-1]["id"]
        done += len(passages)
        advance(done, total)
    return done
