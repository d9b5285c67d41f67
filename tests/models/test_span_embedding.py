"""One vector per span of a passage, from one pass over the whole passage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import embedder_of

from models.embeddings import Embedder, SpanEmbedder
from models.folder import Prompts

TEXT = "The harbour is open. It was built in 1900. A forest grows behind it."


@pytest.fixture(scope="module")
def spans_of_embedded(embedded: Embedder) -> SpanEmbedder:
    assert isinstance(embedded, SpanEmbedder)
    return embedded


def test_passages_have_the_vectors_of_embed_documents(spans_of_embedded: SpanEmbedder) -> None:
    texts = [TEXT, "", "another text", "word " * 600]
    vectors, parts = spans_of_embedded.embed_passages(texts, [[(0, 20)], [], [(0, 7)], []])
    assert np.array_equal(vectors, spans_of_embedded.embed_documents(texts))
    assert [part.shape for part in parts] == [(1, 384), (0, 384), (1, 384), (0, 384)]


def test_the_whole_passage_is_the_mean_of_its_tokens(spans_of_embedded: SpanEmbedder) -> None:
    """The marks [CLS] and [SEP] belong to the passage and to no span."""
    vectors, parts = spans_of_embedded.embed_passages([TEXT], [[(0, len(TEXT))]])
    assert 0.95 < parts[0][0] @ vectors[0] < 1


def test_a_span_knows_the_passage_around_it(spans_of_embedded: SpanEmbedder) -> None:
    query = spans_of_embedded.embed_query("When was the harbour built?")
    start = TEXT.index("It was")
    late = spans_of_embedded.embed_passages([TEXT], [[(start, start + 21)]])[1][0][0]
    alone = spans_of_embedded.embed_documents([TEXT[start : start + 21]])[0]
    assert late @ query > alone @ query + 0.05


@given(
    st.text(max_size=40), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=4)
)
def test_every_span_inside_its_passage_has_a_unit_vector(
    spans_of_embedded: SpanEmbedder, text: str, ends: list[tuple[int, int]]
) -> None:
    spans = [(min(pair), max(pair)) for pair in ends if max(pair) <= len(text)]
    vectors, parts = spans_of_embedded.embed_passages([text], [spans])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)
    assert parts[0].shape == (len(spans), 384)
    assert np.allclose(np.linalg.norm(parts[0], axis=1), 1, atol=1e-4)


def test_a_span_that_was_cut_off_is_embedded_alone(spans_of_embedded: SpanEmbedder) -> None:
    text = "word " * 600 + "the harbour"
    span = (3000, 3011)
    part = spans_of_embedded.embed_passages([text], [[span, (0, 4)]])[1][0]
    alone = spans_of_embedded.embed_documents(["the harbour"])[0]
    assert np.allclose(part[0], alone, atol=1e-5)
    assert not np.allclose(part[1], alone, atol=1e-2)


def test_a_prompt_moves_no_span(tiny_folder: Path, model_cache: Path) -> None:
    loaded = embedder_of(tiny_folder, model_cache, prompts=Prompts("", "the forest . "))
    assert isinstance(loaded, SpanEmbedder)
    first, second = loaded.embed_passages(["harbour word"], [[(0, 7), (8, 12)]])[1][0]
    assert not np.allclose(first, second, atol=1e-3)
    both = loaded.embed_passages(["harbour word"], [[(0, 12)]])[1][0][0]
    # The mean of two token states points between them, so it is nearer to each than they are.
    assert min(both @ first, both @ second) > first @ second


def test_the_batch_does_not_matter(spans_of_embedded: SpanEmbedder) -> None:
    texts = [TEXT[: 10 * n] for n in range(1, 7)]
    spans = [[(0, 5), (5, 10)] for _ in texts]
    together = spans_of_embedded.embed_passages(texts, spans)[1]
    for text, span, part in zip(texts, spans, together, strict=True):
        assert np.allclose(part, spans_of_embedded.embed_passages([text], [span])[1][0], atol=1e-4)


def test_only_models_that_pool_by_the_mean_in_onnx_have_it(
    make_model: Callable[..., Path], model_cache: Path
) -> None:
    def load(pooling: str, backend: str) -> Embedder:
        return embedder_of(make_model("bert", pooling), model_cache, backend=backend)

    assert isinstance(load("mean", "onnx"), SpanEmbedder)
    assert not isinstance(load("cls", "onnx"), SpanEmbedder)
    assert not isinstance(load("mean", "torch"), SpanEmbedder)
