"""A vector channel that knows nothing must not spoil a search by words, nor the other way round."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from fakes import FakeEmbedder, document, write

from core.auth import AuthContext
from retrievers.pipelines import run_pipeline
from retrievers.types import Index, Query
from stores.sqlite.catalogue import Collection
from stores.store import Store

ANN = AuthContext(tenant="acme")
DOCUMENTS = 150
WORDS = [f"{first}{second}" for first in "bdfgklmnprst" for second in ("ano", "elo", "iru", "omi")]


def texts() -> list[str]:
    chooser = random.Random(5)
    return [" ".join(chooser.sample(WORDS, 12)) for _ in range(DOCUMENTS)]


def found_first(index: Index, questions: Sequence[tuple[str, str]], pipeline: str) -> float:
    """Return the share of questions whose document comes first."""
    hits = [
        run_pipeline(index, Query(text, ANN, language="en"), pipeline, 5).evidence[0].document_id
        == name
        for name, text in questions
    ]
    return sum(hits) / len(hits)


@pytest.fixture
def questions(store: Store, collection: Collection) -> list[tuple[str, str]]:
    chooser = random.Random(6)
    return [(f"d{n}", " ".join(chooser.sample(text.split(), 5))) for n, text in enumerate(texts())][
        :60
    ]


def indexed(store: Store, collection: Collection, embedder: FakeEmbedder, settings) -> Index:
    rows = [document(collection, f"d{n}", text) for n, text in enumerate(texts())]
    write(store, collection, rows, embedder)
    return Index(store, collection, embedder, settings)


def test_words_nobody_wrote_leave_a_search_by_vectors_as_good_as_it_is(
    store: Store, collection: Collection, index, questions
) -> None:
    """The questions are in other words than the documents; only the model knows they are alike."""

    class Translating(FakeEmbedder):
        def embed_query(self, text: str) -> np.ndarray:
            return super().embed_query(text.replace("x", ""))

    model = Translating()
    known = indexed(store, collection, model, index().settings)
    foreign = [(name, " ".join(f"x{word}" for word in text.split())) for name, text in questions]
    vectors = found_first(known, foreign, "vector")
    assert vectors > 0.6
    assert found_first(known, foreign, "hybrid") == vectors
