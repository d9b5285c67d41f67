"""Texts are embedded once for as long as they are remembered, and for their tenant alone."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from fakes import FakeEmbedder

from core.cache import Cache, local_cache
from core.cache_stores import MemoryStore, random_secret
from core.errors import ModelError
from models.embeddings import CachedEmbedder

TEXTS = ["The cat sat.", "Кот сидел.", "猫坐着。", "", "\ud800 half a pair", "The cat sat."]


class Counting(FakeEmbedder):
    def __init__(self, model_id: str = "fake") -> None:
        super().__init__(model_id=model_id)
        self.embedded: list[str] = []

    def embed_documents(self, texts: list[str]) -> np.ndarray:  # type: ignore[override]
        self.embedded += texts
        time.sleep(0)  # let another thread in
        return np.array([FakeEmbedder.embed_query(self, text) for text in texts], dtype=np.float32)

    def embed_query(self, text: str) -> np.ndarray:
        self.embedded.append(f"query {text}")
        return super().embed_query(text)


def test_vectors_are_those_of_the_embedder_and_made_once() -> None:
    counting = Counting()
    cached = CachedEmbedder(counting, local_cache("embeddings", 64))
    expected = FakeEmbedder().embed_documents(TEXTS)
    for _ in range(3):
        found = cached.embed_documents(TEXTS)
        assert found.dtype == np.float32
        assert (found == expected).all()
    assert counting.embedded == TEXTS[:-1]
    assert cached.embed_documents([]).shape == (0, cached.dimension)
    for _ in range(2):  # a question and a passage of the same words may have other vectors
        assert (cached.embed_query("The cat sat.") == expected[0]).all()
    assert counting.embedded[len(TEXTS) - 1 :] == ["query The cat sat."]


@pytest.mark.parametrize(
    ("model", "scope"), [("fake", "rival"), ("another", "acme"), ("another", "rival")]
)
def test_another_model_or_tenant_shares_nothing(model: str, scope: str) -> None:
    cache = local_cache("embeddings", 64)
    CachedEmbedder(Counting(), cache, "acme").embed_documents(["a secret"])
    other = Counting(model)
    CachedEmbedder(other, cache, scope).embed_documents(["a secret"])
    assert other.embedded == ["a secret"]
    same = Counting()
    CachedEmbedder(same, cache, "acme").embed_documents(["a secret"])
    assert same.embedded == []


def test_vectors_are_made_anew_when_their_time_is_over() -> None:
    now = [0.0]
    store = MemoryStore(entries=8, clock=lambda: now[0])
    cache = Cache("embeddings", store, random_secret(), 24 * 3600, lambda: now[0])
    counting = Counting()
    cached = CachedEmbedder(counting, cache)
    for hours in (0, 23.9, 24.1):
        now[0] = hours * 3600
        cached.embed_documents(["x"])
    assert counting.embedded == ["x", "x"]


def test_threads_embed_each_text_once_between_them() -> None:
    counting = Counting()
    cached = CachedEmbedder(counting, local_cache("embeddings", 1000))
    texts = [f"sentence {n}" for n in range(60)]
    begin = Barrier(4)

    def work(thread: int) -> bool:
        mine = texts[thread * 10 :] + texts[: thread * 10]
        begin.wait(60)
        parts = [mine[start : start + 7] for start in range(0, 60, 7)]
        rows = [row for part in parts for row in cached.embed_documents(part)]
        return bool((np.array(rows) == FakeEmbedder().embed_documents(mine)).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))
    assert set(counting.embedded) == set(texts)


def test_a_failure_is_not_remembered() -> None:
    class Failing(Counting):
        def embed_documents(self, texts: list[str]) -> np.ndarray:  # type: ignore[override]
            if not self.embedded:
                self.embedded.append("failed")
                raise ModelError("the model failed while it ran")
            return super().embed_documents(texts)

    cached = CachedEmbedder(Failing(), local_cache("embeddings", 8))
    with pytest.raises(ModelError):
        cached.embed_documents(["x"])
    assert (cached.embed_documents(["x"]) == FakeEmbedder().embed_documents(["x"])).all()
