"""Evidence, searches and a small real library for the tests of the stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from fakes import FakeEmbedder

from core.auth import AuthContext
from core.settings import Settings
from core.types import Evidence
from retrievers.types import Index, Query, Searched

ANN = AuthContext(tenant="acme")


class WithVectors(Searched):
    """A search that knows the vectors of its chunks by id."""

    def vectors(self, chunk_ids: Sequence[str]) -> np.ndarray:
        found = self.index.store.catalogue.evidence(ANN, self.index.collection.id, chunk_ids)
        return FakeEmbedder().embed_documents([found[key].text for key in chunk_ids])


class WordReranker:
    """Score a passage by the share of the question's words in it."""

    model_id = "words"

    def __init__(self, languages: frozenset[str] | None = None) -> None:
        self.languages = languages
        self.asked: list[str] = []

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        self.asked = list(passages)
        words = set(question.casefold().split())
        return [len(words & set(p.casefold().split())) / max(1, len(words)) for p in passages]


def hit(name: str, text: str = "", score: float = 0.5, **values: object) -> Evidence:
    base = {
        "evidence_id": name, "chunk_id": name, "document_id": name, "document_key": name,
        "source": f"{name}.md", "title": "", "text": text or name, "score": score,
    }  # fmt: skip
    return Evidence(**{**base, **values})


def searched(index: Index, text: str = "Where is the harbour?", **values: object) -> Searched:
    fields = {name: values.pop(name) for name in ("vector",) if name in values}
    return Searched(index, Query(text, **{"auth": ANN, **values}), **fields)


def with_settings(index: Index, **values: object) -> Index:
    return replace(index, settings=Settings(**{"data": index.store.folder, **values}))


def ids(evidence: Sequence[Evidence]) -> list[str]:
    return [item.chunk_id for item in evidence]
