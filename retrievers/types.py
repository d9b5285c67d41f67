"""Ranked chunks, stages over ranked evidence, and what every retriever needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from core.auth import AuthContext
from core.settings import Settings
from core.trace import StageStep
from core.types import Evidence
from models.embeddings import Embedder
from models.reranker import Reranker
from stores.index.port import SearchIndex
from stores.ports import Catalogue, Notes, Trees
from stores.sqlite.catalogue import Collection
from stores.store import Store

if TYPE_CHECKING:
    Vector = NDArray[np.float32]
else:
    Vector = Any


class PassageWriter(Protocol):
    """Write what a passage that answers a question might say."""

    def write_passage(self, question: str, language: str) -> str:
        """Return a short passage; "" or ModelError when there is none."""


@dataclass(frozen=True)
class Index:
    """Name the collection that is searched and the models that search it.

    Without an embedder only keywords are searched; `keywords_only` says why. `second` is the
    embedder that votes beside it in the classic pipeline, `writer` what writes passages for weak
    searches.
    """

    store: Store
    collection: Collection
    embedder: Embedder | None
    settings: Settings
    reranker: Reranker | None = None
    second: Embedder | None = None
    writer: PassageWriter | None = None
    keywords_only: str = "there is no embedder"

    @property
    def search(self) -> SearchIndex:
        """Return what finds chunks by words and by vectors."""
        return self.store.search

    @property
    def catalogue(self) -> Catalogue:
        """Return what exists and what a caller may see."""
        return self.store.catalogue

    @property
    def trees(self) -> Trees:
        """Return the trees of collections."""
        return self.store.trees

    @property
    def notes(self) -> Notes:
        """Return the notes of memory."""
        return self.store.notes

    def vectors(self, chunk_ids: Sequence[str]) -> Vector:
        """Return the unit vectors of chunks, shape (n, dimension), zeros where one is missing."""
        rows = self.search.vectors(self.collection.id, chunk_ids)
        return np.asarray(np.nan_to_num(rows, nan=0.0))


@dataclass(frozen=True)
class Query:
    """Hold one search under one caller's rights; `sources` are patterns of the tool's scope.

    `kinds` of chunks belong to that scope too, empty for all.
    `language` is the question's, None when nobody has looked yet. `deadline` is in
    `time.monotonic()` seconds; stages that only improve a ranking are left out after it.
    """

    text: str
    auth: AuthContext
    sources: Sequence[str] = ()
    language: str | None = None
    deadline: float | None = None
    kinds: Sequence[str] = ()


@dataclass(frozen=True)
class Searched:
    """Hold what the stages of one search share: the index, the query, its vector.

    `vector` is None when the embedder is missing or does not serve the query's language.
    """

    index: Index
    query: Query
    vector: Vector | None = None


@dataclass
class RetrievalResult:
    """The evidence that a search found, best first, and what a caller should know about it.

    `notes` say how the search was done. `hidden` counts rows that a channel returned and the
    catalogue did not permit; it is 0 unless an index is stale. `stages` is the trace. `partial`
    says that a model failed or time ran out, so that the same search may find more next time.
    """

    evidence: list[Evidence] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    hidden: int = 0
    stages: list[StageStep] = field(default_factory=list)
    partial: bool = False


# A stage takes ranked evidence, best first, and returns it re-ranked, cut or widened, with a note.
Stage = Callable[[Searched, list[Evidence]], tuple[list[Evidence], str]]
