"""Embed the texts of chunks, for the pipeline, a rebuild and a repair alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from core.faults import fault
from core.language.sentences import sentence_spans
from core.settings import Settings
from ingest.enrich import embedded_keywords, embedded_parts, embedded_title
from models.embeddings import Embedder, SpanEmbedder, Vectors
from stores.ports import Intake
from stores.sqlite.rows import ChunkRow
from stores.sqlite.writer import UnembeddedChunk
from stores.store import Store

Progress = Callable[[str, int, int], None]  # stage, done, in all


@dataclass(frozen=True)
class EmbeddingInput:
    """Hold a text to embed; a chunk's own text stands in it from `start` for `length`."""

    text: str
    start: int
    length: int
    language: str

    @classmethod
    def of(
        cls,
        title: str,
        metadata: dict[str, Any],
        language: str,
        chunk: ChunkRow | UnembeddedChunk,
    ) -> EmbeddingInput:
        """Put a chunk under its headings and keywords and before its context."""
        keywords = embedded_keywords(metadata, chunk.ordinal)
        full, start = embedded_parts(title, chunk.section, chunk.text, chunk.context, keywords)
        return cls(full, start, len(chunk.text), language)

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


def passage_vectors(embedder: Embedder, passages: Mapping[str, EmbeddingInput]) -> Embedded:
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
    intake: Intake,
    embedder: Embedder,
    batch: int,
    advance: Callable[[int, int], None],
    collection_id: int | None = None,
) -> int:
    """Embed the chunks that have no vector of this model, and return how many texts that were.

    So are those without vectors of sentences, where the model gives them; of one collection, or of
    all. Every batch is kept at once, so an interruption costs one.
    """
    model, sentences = embedder.model_id, isinstance(embedder, SpanEmbedder)
    total, done = intake.count_unembedded(model, collection_id, sentences=sentences), 0
    for chunks in intake.unembedded(model, collection_id, batch, sentences=sentences):
        passages = {
            chunk.content_hash: EmbeddingInput.of(
                embedded_title(chunk.title, chunk.document_id),
                chunk.metadata,
                chunk.language,
                chunk,
            )
            for chunk in chunks
        }
        intake.store_vectors(model, *passage_vectors(embedder, passages))
        done += len(passages)
        advance(done, total)
    return done


def verify_documents(store: Store, collection_id: int, documents: Sequence[str]) -> dict[str, str]:
    """Read documents back and take those that are complete out of the journal.

    Those that are not are written to the indexes once more; what they still lack is returned by id.
    """
    intake, maintenance = store.intake, store.maintenance
    lacking = maintenance.missing(collection_id, documents)
    if lacking:
        maintenance.index_words_again(collection_id, list(lacking))
        lacking = maintenance.missing(collection_id, documents)
    intake.mark_verified(collection_id, [name for name in documents if name not in lacking])
    return lacking


def recover(store: Store, embedder: Embedder, batch: int) -> int:
    """Bring in what an interrupted run had written already; return how many documents that were.

    Those that cannot be read back stay in the journal.
    """
    intake, catalogue, search = store.intake, store.catalogue, store.search
    for collection in catalogue.collections():
        search.write_new(collection.id)
    recovered = 0
    for collection in catalogue.collections():
        last, tried = "", False
        while found := intake.unverified_documents(collection.id, batch, last):
            lacking = verify_documents(store, collection.id, found)
            if lacking and not tried:  # their vectors may be of another model
                tried = True
                embed_missing(intake, embedder, batch, lambda done, total: None, collection.id)
                lacking = verify_documents(store, collection.id, list(lacking))
            recovered += len(found) - len(lacking)
            last = found[-1]
    return recovered


def repair(
    store: Store,
    embedder: Embedder | None,
    settings: Settings,
    progress: Progress,
    second: Embedder | None = None,
) -> list[str]:
    """Repair the directory and return what was done; what is damaged in the truth stays so."""

    def embed() -> list[str]:
        shown = partial(progress, "embed")
        models = [one for one in (embedder, second) if one is not None]
        counts = [embed_missing(store.intake, one, settings.ingest.batch, shown) for one in models]
        return [f"{n} texts without a sound vector were embedded again" for n in counts if n]

    maintenance = store.maintenance
    return maintenance.repair(embed, progress)


def rebuild(
    store: Store,
    embedder: Embedder,
    settings: Settings,
    progress: Progress,
    second: Embedder | None = None,
    *,
    words: bool = True,
    switched: bool = False,
) -> dict[str, Any]:
    """Rebuild full text and vectors; texts without a vector of these models are embedded first.

    Without `words` the full text stays as it is. An index that was `switched` to is made already,
    but for what it does not have yet.
    """
    started = time.monotonic()
    intake, catalogue = store.intake, store.catalogue
    rows = intake.rebuild_words(progress) if words else 0
    embedded = 0
    for stage, model in (("embed", embedder), ("second", second)):
        if model is not None:
            embedded += embed_missing(
                intake, model, settings.ingest.batch, partial(progress, stage)
            )
    search = store.search
    fault("rebuild.before")
    for collection in catalogue.collections():
        made = search.refresh if switched else search.rebuild
        made(collection, partial(progress, f"index {collection.name}"))
    fault("rebuild.after")
    return {
        "fts_rows": rows,
        "vectors": intake.count_vectors(embedder.model_id),
        "embedded": embedded,
        "seconds": round(time.monotonic() - started, 3),
    }
