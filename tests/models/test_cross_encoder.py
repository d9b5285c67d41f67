"""Contract of Reranker, with ONNX and torch, and what a model must be to rank."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tiny_models import change_weights

from core.errors import ModelError
from models.reranker import Reranker, load_reranker

Make = Callable[..., Path]
QUESTION = "the harbour?"
PASSAGES = ["the harbour .", "forest", "", "word " * 500, "half \ud800", "日本語", "the harbour ."]


def load(folder: Path | str, cache: Path, backend: str = "auto", max_tokens: int = 512) -> Reranker:
    given = {"threads": 1, "batch_size": 3, "max_tokens": max_tokens, "backend": backend}
    found = load_reranker(str(folder), cache_dir=cache, **given)
    assert found is not None
    return found


@pytest.fixture(params=["onnx", "torch"])
def reranker(
    request: pytest.FixtureRequest, tiny_cross_encoder: Path, model_cache: Path
) -> Reranker:
    return load(tiny_cross_encoder, model_cache, request.param)


def test_scores_lie_between_0_and_1_and_follow_the_passages(reranker: Reranker) -> None:
    scores = reranker.score(QUESTION, PASSAGES)
    assert len(scores) == len(PASSAGES)
    assert all(0 < score < 1 for score in scores)
    assert scores[0] == pytest.approx(scores[-1], abs=1e-5)
    assert len({round(score, 4) for score in scores}) > 3
    assert reranker.score(QUESTION, []) == []
    backwards = reranker.score(QUESTION, PASSAGES[::-1])[::-1]
    assert scores == pytest.approx(backwards, abs=1e-5)


def test_question_and_passage_are_told_apart(reranker: Reranker) -> None:
    there = reranker.score("the forest", ["harbour"])
    back = reranker.score("harbour", ["the forest"])
    assert there != pytest.approx(back, abs=1e-4)


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta", "distilbert"])
def test_onnx_and_torch_agree(make_cross_encoder: Make, tmp_path: Path, kind: str) -> None:
    folder = make_cross_encoder(kind, activation="Identity")
    onnx, torch = load(folder, tmp_path, "onnx"), load(folder, tmp_path, "torch")
    assert onnx.model_id == torch.model_id
    ours, theirs = onnx.score(QUESTION, PASSAGES), torch.score(QUESTION, PASSAGES)
    assert ours == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("activation", ["Identity", "Sigmoid"])
def test_the_score_is_the_sigmoid_of_the_logit(
    make_cross_encoder: Make, tmp_path: Path, activation: str
) -> None:
    from sentence_transformers import CrossEncoder
    from torch import nn

    folder = make_cross_encoder(activation=activation)
    library = CrossEncoder(str(folder), device="cpu", local_files_only=True)
    logits = library.predict([(QUESTION, PASSAGES[0])], activation_fn=nn.Identity())
    found = load(folder, tmp_path)
    expected = 1 / (1 + math.exp(-float(logits[0])))
    assert found.score(QUESTION, PASSAGES[:1]) == pytest.approx([expected], abs=1e-5)


def test_other_kinds_run_in_torch(make_cross_encoder: Make, tmp_path: Path) -> None:
    folder = make_cross_encoder("mpnet")
    found = load(folder, tmp_path)
    assert vars(found)["backend"] == "torch"
    assert len(found.score(QUESTION, PASSAGES)) == len(PASSAGES)
    with pytest.raises(ModelError, match="mpnet are run by torch"):
        load(folder, tmp_path, "onnx")


def test_the_length_is_part_of_the_name(tiny_cross_encoder: Path, model_cache: Path) -> None:
    short, long = (load(tiny_cross_encoder, model_cache, max_tokens=n) for n in (16, 32))
    assert short.model_id != long.model_id
    tail = ["word " * 14 + "harbour", "word " * 14 + "forest"]
    assert np.ptp(short.score("the", tail)) == pytest.approx(0, abs=1e-6)
    assert np.ptp(long.score("the", tail)) > 1e-5


def test_a_known_name_brings_its_languages(
    tiny_cross_encoder: Path, copy_of: Make, tmp_path: Path
) -> None:
    found = load(copy_of(tiny_cross_encoder, "ms-marco-MiniLM-L6-v2"), tmp_path / "cache")
    assert found.languages == {"en"}
    unknown = load(tiny_cross_encoder, tmp_path / "cache")
    assert unknown.languages is None


def test_none_is_no_reranker(tmp_path: Path) -> None:
    given = {"threads": 1, "batch_size": 3, "max_tokens": 512}
    assert load_reranker("none", cache_dir=tmp_path, **given) is None


def test_what_cannot_rank_is_refused(
    tiny_folder: Path, make_cross_encoder: Make, tmp_path: Path
) -> None:
    for folder, said in (
        ("/nowhere/at/all", "CARREL_RERANKER, or use 'none'"),
        (tiny_folder, "must be a cross-encoder"),
        (make_cross_encoder(labels=3, activation="Identity"), "one label"),
        (make_cross_encoder(activation="Tanh"), "identity or sigmoid"),
    ):
        with pytest.raises(ModelError, match=said):
            load(folder, tmp_path)


@pytest.mark.parametrize("backend", ["auto", "torch"])
@pytest.mark.parametrize("tensor", ["classifier.weight", "bert.pooler.dense.weight"])
def test_a_missing_head_is_never_random(
    tiny_cross_encoder: Path, copy_of: Make, tmp_path: Path, tensor: str, backend: str
) -> None:
    folder = copy_of(tiny_cross_encoder)
    change_weights(folder, lambda weights: weights.pop(tensor))
    with pytest.raises(ModelError, match="weights are missing"):
        load(folder, tmp_path / "cache", backend)


@pytest.mark.parametrize("backend", ["onnx", "torch"])
def test_scores_that_are_no_numbers_are_refused(
    tiny_cross_encoder: Path, copy_of: Make, tmp_path: Path, backend: str
) -> None:
    folder = copy_of(tiny_cross_encoder)
    change_weights(folder, lambda weights: weights["classifier.bias"].fill_(float("nan")))
    with pytest.raises(ModelError, match="finite score"):
        load(folder, tmp_path / "cache", backend).score(QUESTION, PASSAGES)


def test_corrupt_weights_are_one_line(
    tiny_cross_encoder: Path, copy_of: Make, tmp_path: Path
) -> None:
    folder = copy_of(tiny_cross_encoder)
    (folder / "model.safetensors").write_bytes(b"\xff" * 999)
    with pytest.raises(ModelError, match="cannot be loaded") as caught:
        load(folder, tmp_path / "cache")
    assert "\n" not in str(caught.value)


def test_an_old_config_names_its_activation(
    tiny_cross_encoder: Path, copy_of: Make, tmp_path: Path
) -> None:
    folder = copy_of(tiny_cross_encoder)
    (folder / "config_sentence_transformers.json").unlink()
    config = json.loads((folder / "config.json").read_text())
    config["sbert_ce_default_activation_function"] = "torch.nn.modules.activation.Tanh"
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="Tanh"):
        load(folder, tmp_path / "cache")
