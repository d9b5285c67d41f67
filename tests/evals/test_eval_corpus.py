"""The embedder that counts is the one it counts for."""

from __future__ import annotations

import numpy as np
from fakes import FakeEmbedder

from core.settings import Settings
from evals.corpus import counting
from models.embeddings import SpanEmbedder
from models.loading import open_embedder

TEXTS = ["The harbour is closed. A pilot is dear.", "A quiet forest."]


def test_a_counting_embedder_tells_sentences_apart_when_its_original_does() -> None:
    """Else an evaluation would measure less than a user gets."""
    calls: list[int] = []
    model = open_embedder(Settings())
    counted = counting(model, lambda stage, done, total: calls.append(done))
    assert isinstance(model, SpanEmbedder)
    assert isinstance(counted, SpanEmbedder)
    rows, parts = counted.embed_passages(TEXTS, [[(0, 22), (23, 39)], []])
    own_rows, own_parts = model.embed_passages(TEXTS, [[(0, 22), (23, 39)], []])
    assert np.allclose(rows, own_rows)
    assert np.allclose(parts[0], own_parts[0])
    assert np.allclose(counted.embed_documents(TEXTS), rows, atol=1e-5)
    assert calls == [2, 4]


def test_one_that_cannot_does_not_pretend() -> None:
    fake = FakeEmbedder()
    counted = counting(fake, lambda stage, done, total: None)
    assert not isinstance(counted, SpanEmbedder)
    assert np.allclose(counted.embed_query("harbour"), fake.embed_query("harbour"))
