"""Contract of Embedder: the fake, the embedded models, folders, endpoints and the cache alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fakes import FakeEmbedder
from tiny_models import embedder_of

from core.cache import local_cache
from models.embeddings import CachedEmbedder, Embedder

TEXTS = [
    "The harbour is open.",
    "A quiet forest.",
    "",
    "😀 日本語 \x00",
    "word " * 1000,
    "half of a pair \ud800",
    "The harbour is open.",
]
FOLDERS = {
    "bert, onnx": ("bert", "mean", 0, "onnx"),
    "bert, torch": ("bert", "mean", 0, "torch"),
    "bert of cls, onnx": ("bert", "cls", 0, "onnx"),
    "roberta, onnx": ("roberta", "mean", 0, "onnx"),
    "xlm-roberta, onnx": ("xlm-roberta", "cls", 0, "onnx"),
    "distilbert, onnx": ("distilbert", "mean", 0, "onnx"),
    "mpnet, auto": ("mpnet", "mean", 0, "auto"),
    "bert with a dense layer, auto": ("bert", "mean", 8, "auto"),
    "bert of max, auto": ("bert", "max", 0, "auto"),
}


@pytest.fixture(params=["fake", "cached", "endpoint", "embedded", "embedded_en", *FOLDERS])
def any_embedder(
    request: pytest.FixtureRequest, make_model: Callable[..., Path], model_cache: Path
) -> Embedder:
    if request.param == "fake":
        return FakeEmbedder()
    if request.param == "cached":
        return CachedEmbedder(FakeEmbedder(), local_cache("embeddings", 4))
    if request.param == "endpoint":
        server = request.getfixturevalue("embedding_endpoint")
        server.tells = False  # no model, hence no prompts
        return embedder_of(server.url, model_cache)
    if request.param.startswith("embedded"):
        return request.getfixturevalue(request.param)
    *model, backend = FOLDERS[request.param]
    return embedder_of(make_model(*model), model_cache, batch_size=4, backend=backend)


def test_vectors_are_unit_rows_of_the_named_dimension(any_embedder: Embedder) -> None:
    rows = any_embedder.embed_documents(TEXTS)
    assert rows.shape == (len(TEXTS), any_embedder.dimension)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-4)
    query = any_embedder.embed_query(TEXTS[0])
    assert query.shape == (any_embedder.dimension,)
    if any_embedder.model_id.startswith("multilingual"):  # its prompts tell questions apart
        assert 0.88 < query @ rows[0] < 0.98
    else:
        assert query @ rows[0] == pytest.approx(1.0, abs=1e-4)


def test_the_same_text_has_the_same_vector(any_embedder: Embedder) -> None:
    rows = any_embedder.embed_documents(TEXTS)
    assert np.allclose(rows, any_embedder.embed_documents(TEXTS), atol=1e-6)
    assert np.allclose(rows[0], rows[-1], atol=1e-5)


def test_the_order_and_the_batch_do_not_matter(any_embedder: Embedder) -> None:
    rows = any_embedder.embed_documents(TEXTS)
    backwards = any_embedder.embed_documents(TEXTS[::-1])[::-1]
    assert np.allclose(rows, backwards, atol=1e-4)
    alone = np.array([any_embedder.embed_documents([text])[0] for text in TEXTS])
    assert np.allclose(rows, alone, atol=1e-4)


def test_no_text_gives_no_rows(any_embedder: Embedder) -> None:
    assert any_embedder.embed_documents([]).shape == (0, any_embedder.dimension)


def test_the_model_has_a_name_and_tells_what_a_cosine_means(any_embedder: Embedder) -> None:
    assert any_embedder.model_id
    assert any_embedder.languages is None or all(any_embedder.languages)
    told = [any_embedder.similarity(cosine, "en", "en") for cosine in (-1.0, 0.0, 0.5, 1.0)]
    assert told == sorted(told)
    assert told[0] >= 0 and told[-1] >= 1 - 1e-6
