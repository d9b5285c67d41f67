"""Vectors of passages and of their sentences, with the embedded model itself."""

from __future__ import annotations

import numpy as np
import pytest
from behind import rows as rows_of
from fakes import FakeEmbedder, document, write_rows

from core.settings import Settings
from ingest.enrich import embedded_parts
from ingest.vectors import EmbeddingInput, embed_missing, passage_vectors
from models.embeddings import Embedder, SpanEmbedder
from models.loading import open_embedder
from stores.store import Store

TWO = "The harbour is closed in winter. A pilot costs forty crowns."


@pytest.fixture(scope="module")
def model() -> Embedder:
    return open_embedder(Settings(embedder="embedded-en"))


def passage(
    text: str, *, title: str = "", context: str = "", keywords: str = "", language: str = "en"
) -> EmbeddingInput:
    full, start = embedded_parts(title, "", text, context, keywords)
    return EmbeddingInput(full, start, len(text), language)


@pytest.mark.parametrize(
    ("made", "sentences"),
    [
        (passage("One sentence alone."), []),
        (passage(TWO), ["The harbour is closed in winter.", "A pilot costs forty crowns."]),
        (passage("One sentence.", title="Harbours"), ["One sentence."]),
        (passage("One sentence.", context="previous: another"), ["One sentence."]),
        (passage("One sentence.", keywords="harbours, pilots"), ["One sentence."]),
    ],
    ids=["alone", "two", "under a title", "with context", "with keywords"],
)
def test_sentences_are_those_of_the_chunk_itself(made, sentences) -> None:
    assert [made.text[start:end] for start, end in made.sentences()] == sentences


def test_a_sentence_is_nearer_to_its_question_than_the_whole_passage(model) -> None:
    embedded = passage_vectors(model, {"a": passage(TWO, title="Rules")})
    question = model.embed_query("How much is a pilot?")
    whole = float(embedded.vectors["a"] @ question)
    cosines = embedded.sentences["a"] @ question
    assert embedded.sentences["a"].shape == (2, model.dimension)
    assert int(np.argmax(cosines)) == 1
    assert cosines.max() > whole


def test_the_vector_of_a_passage_does_not_depend_on_its_sentences(model) -> None:
    made = passage(TWO)
    alone = model.embed_documents([made.text])[0]
    assert passage_vectors(model, {"a": made}).vectors["a"] == pytest.approx(alone, abs=1e-6)


def test_a_language_the_model_does_not_serve_gets_no_sentence_vectors(model) -> None:
    made = passage("Гавань закрыта зимой. Лоцман стоит сорок крон.", language="ru")
    assert passage_vectors(model, {"a": made}).sentences["a"].shape == (0, model.dimension)


def test_a_model_without_spans_gives_vectors_of_passages_only() -> None:
    fake = FakeEmbedder()
    assert not isinstance(fake, SpanEmbedder)
    embedded = passage_vectors(fake, {"a": passage(TWO)})
    assert set(embedded.vectors) == {"a"}
    assert embedded.sentences == {}


def test_a_rebuild_adds_the_sentences_that_an_older_version_did_not_keep(tmp_path, model) -> None:
    settings = Settings(data=tmp_path / "data")
    with Store(settings, model.model_id, create=True) as store:
        collection = store.intake.open_collection("acme", "main", None)
        texts = {"a": TWO, "b": "Only one."}
        rows = [document(collection, name, text, title=name) for name, text in texts.items()]
        hashes = [chunk.content_hash for row in rows for chunk in row.chunks]
        vectors = dict(zip(hashes, model.embed_documents([TWO, "Only one."]), strict=True))
        write_rows(store, collection, rows, model.model_id, vectors)
        assert embed_missing(store.intake, model, 10, lambda done, total: None) == 2
        sizes = dict(rows_of(store, "SELECT content_hash, length(vectors) FROM sentence_vectors"))
        assert sizes == {hashes[0]: 2 * model.dimension, hashes[1]: 0}
        assert embed_missing(store.intake, model, 10, lambda done, total: None) == 0
