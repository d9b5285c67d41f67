"""Contract of Embedder: the fake, the embedded model and a sentence-transformers folder alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fakes import FakeEmbedder

from core.errors import ModelError
from core.settings import Settings
from models.embeddings import Embedder, OnnxEmbedder, load_embedder

TEXTS = [
    "The harbour is open.",
    "A quiet forest.",
    "",
    "😀 日本語 \x00",
    "word " * 1000,
    "The harbour is open.",
]


@pytest.fixture(scope="module")
def embedded() -> Embedder:
    settings = Settings()
    return load_embedder("embedded", cache_dir=settings.cache, threads=1, batch_size=4)


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a sentence-transformers model of a few random weights."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("tiny")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "harbour", "forest", "word", "."]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    BertTokenizer(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    encoder = Transformer(str(folder), max_seq_length=32)
    saved = folder / "model"
    SentenceTransformer(modules=[encoder, Pooling(16)], device="cpu").save(str(saved))
    return saved


@pytest.fixture(params=["fake", "embedded", "folder"])
def any_embedder(request: pytest.FixtureRequest) -> Embedder:
    if request.param == "fake":
        return FakeEmbedder()
    if request.param == "embedded":
        return request.getfixturevalue("embedded")
    folder = request.getfixturevalue("tiny_folder")
    return load_embedder(str(folder), cache_dir=folder, threads=1, batch_size=4)


def test_vectors_are_unit_rows_of_the_named_dimension(any_embedder: Embedder) -> None:
    rows = any_embedder.embed_documents(TEXTS)
    assert rows.shape == (len(TEXTS), any_embedder.dimension)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-4)
    query = any_embedder.embed_query(TEXTS[0])
    assert query.shape == (any_embedder.dimension,)
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


def test_the_model_has_a_name(any_embedder: Embedder) -> None:
    assert any_embedder.model_id


def test_the_embedded_model_is_english_and_named_by_its_weights(embedded: Embedder) -> None:
    assert embedded.languages == {"en"}
    assert embedded.dimension == 384
    name, _, digest = embedded.model_id.partition("@")
    assert (name, len(digest)) == ("all-MiniLM-L6-v2", 12)


def test_the_embedded_model_puts_meaning_before_words(embedded: Embedder) -> None:
    texts = ["A kitten rests on the sofa.", "The bank raised its interest rates."]
    rows = embedded.embed_documents(texts) @ embedded.embed_query("a cat is lying on the couch")
    assert rows[0] > rows[1] + 0.3


def test_a_folder_serves_the_languages_that_settings_name(tiny_folder: Path) -> None:
    given = {"cache_dir": tiny_folder, "threads": 1, "batch_size": 4}
    assert load_embedder(str(tiny_folder), **given).languages is None
    named = load_embedder(str(tiny_folder), languages=["ru", "uk"], **given)
    assert named.languages == {"ru", "uk"}


@pytest.mark.parametrize("name", ["no-such-model-anywhere", "/nowhere/at/all"])
def test_a_missing_model_is_one_line_that_says_what_to_do(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelError, match="CARREL_EMBEDDER") as caught:
        load_embedder(name, cache_dir=tmp_path, threads=1, batch_size=1)
    assert "\n" not in str(caught.value)


def test_an_incomplete_model_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer.json").write_text('{"model": {}}')
    with pytest.raises(Exception, match=r"model\.safetensors|tokenizer"):
        OnnxEmbedder(tmp_path, tmp_path, threads=1, batch_size=1)


def test_the_fake_is_nearer_where_words_are_shared(embedder: FakeEmbedder) -> None:
    query = embedder.embed_query("a b c d")
    near, far = embedder.embed_documents(["a b c x", "w x y z"]) @ query
    assert near > far
    assert embedder.embed_query("a b") @ embedder.embed_query("B A") == pytest.approx(1.0)
