"""Choose the chunker of a document by the settings and the document's language."""

from __future__ import annotations

from typing import Any

from core.settings import Settings
from ingest.chunkers.chunkers import (
    Embed,
    FixedChunker,
    SemanticChunker,
    SentenceChunker,
    StructuralChunker,
)
from ingest.chunkers.packing import Chunker
from models.embeddings import Embedder


class Chunkers:
    """Give each document its chunker, and remember where another one had to do."""

    def __init__(
        self, settings: Settings, embedder: Embedder | None = None, embed: Embed | None = None
    ) -> None:
        """Build what `settings.ingest.chunker` names; `embed` is the embedder's way to be called.

        Without an embedder, or in a language it does not serve, semantic chunks are cut by
        sentences.
        """
        self._name = settings.ingest.chunker
        self._embedder = embedder
        self._unserved: set[str] = set()
        self._sentences = SentenceChunker(settings.ingest.chunk_size, settings.ingest.chunk_overlap)
        self._chosen = self._build(settings, embed)
        self.key = _key(settings, embedder)

    def _build(self, settings: Settings, embed: Embed | None) -> Chunker:
        given = settings.ingest
        if self._name == "fixed":
            return FixedChunker(given.chunk_size, given.chunk_overlap)
        if self._name == "structural":
            return StructuralChunker(given.structural_max, others=self._sentences)
        if self._name == "semantic" and self._embedder is not None:
            return SemanticChunker(
                embed or self._embedder.embed_documents,
                self._sentences,
                similarity=given.semantic_similarity,
                least=given.semantic_min,
                most=given.semantic_max,
            )
        return self._sentences

    def choose(self, language: str) -> Chunker:
        """Return the chunker of a document in this language."""
        if self._name == "semantic" and not self._serves(language):
            self._unserved.add(language)
            return self._sentences
        return self._chosen

    def _serves(self, language: str) -> bool:
        if self._embedder is None:
            return False
        return self._embedder.languages is None or language in self._embedder.languages

    @property
    def notes(self) -> list[str]:
        """Say which documents were cut by another chunker than the settings name."""
        if not self._unserved:
            return []
        names = ", ".join(sorted(self._unserved))
        return [
            f"documents in {names} were cut by sentences: the embedder does not serve these"
            " languages, which the semantic chunker needs"
        ]


def _key(settings: Settings, embedder: Embedder | None) -> tuple[Any, ...]:
    """Return every setting that decides where the chosen chunker cuts, and what it merges."""
    given = settings.ingest
    key: list[Any] = [given.chunker, given.chunk_size, given.chunk_overlap]
    if given.chunker == "semantic":
        key += [given.semantic_similarity, given.semantic_min, given.semantic_max]
        served = embedder.languages if embedder else frozenset()
        key += [embedder.model_id if embedder else "", sorted(served) if served else served is None]
    if given.chunker == "structural":
        key.append(given.structural_max)
    if given.merge_short:
        key += ["merged", given.merge_short_chars, given.merge_max]
    return tuple(key)
