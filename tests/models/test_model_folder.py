"""A model that is missing, incomplete, damaged or foreign is one clear line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_models import change_weights, embedder_of

from core.errors import ModelError
from models.embeddings import Embedder
from models.folder import ModelFolder, find_folder

Copy = Callable[..., Path]


def load(folder: Path, cache: Path, backend: str = "auto") -> Embedder:
    return embedder_of(folder, cache, backend=backend)


OWN = {"architectures": ["OwnBertModel"], "auto_map": {"AutoModel": "own.OwnBertModel"}}
FOREIGN = [{"idx": 0, "name": "0", "path": "", "type": "custom_st.Transformer"}]
RUNS = b"raise SystemExit('code of a model was run')"
# What stands in files instead (a dict: changed in them, None: they are gone), and what is said.
DAMAGES: dict[str, tuple[dict[str, Any], str]] = {
    "no config": ({"config.json": None, "modules.json": None}, "needs config.json"),
    "no weights": ({"model.safetensors": None}, "needs its weights"),
    "corrupt weights": ({"model.safetensors": b"\xff" * 4096}, "cannot be loaded"),
    "cut weights": ({"model.safetensors": -64}, "cannot be loaded"),
    "bad JSON": ({"modules.json": b"[{"}, "must be JSON"),
    "a list for a config": ({"config.json": b"[]"}, "must be JSON"),
    "a foreign module": (
        {"modules.json": json.dumps(FOREIGN).encode(), "custom_st.py": RUNS},
        "program code is never run",
    ),
    "a foreign architecture": ({"config.json": OWN, "own.py": RUNS}, "program code is never run"),
    "a bad tokenizer": (
        {"tokenizer.json": b'{"model": {}}'},
        "tokenizer.json cannot be read|cannot be loaded",
    ),
    "another width": ({"1_Pooling/config.json": {"embedding_dimension": 24}}, "declare 24 numbers"),
}


def damage(path: Path, content: Any) -> None:
    if content is None:
        path.unlink()
    elif isinstance(content, int):
        path.write_bytes(path.read_bytes()[:content])
    elif isinstance(content, dict):
        path.write_text(json.dumps(json.loads(path.read_text()) | content))
    else:
        path.write_bytes(content)


@pytest.mark.parametrize("backend", ["auto", "torch"])
@pytest.mark.parametrize(("files", "said"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_folder_is_one_line(
    tiny_folder: Path, copy_of: Copy, tmp_path: Path, files: dict[str, Any], said: str, backend: str
) -> None:
    folder = copy_of(tiny_folder)
    for name, content in files.items():
        damage(folder / name, content)
    with pytest.raises(ModelError, match=said) as caught:
        load(folder, tmp_path / "cache", backend)
    assert "\n" not in str(caught.value)
    assert caught.value.hint


def test_missing_tensors_are_never_filled_with_random_numbers(
    tiny_folder: Path, copy_of: Copy, tmp_path: Path
) -> None:
    folder = copy_of(tiny_folder)
    change_weights(folder, lambda weights: weights.pop("encoder.layer.0.output.dense.weight"))
    for backend in ("auto", "onnx", "torch"):
        with pytest.raises(ModelError, match="weights are missing"):
            load(folder, tmp_path / "cache", backend)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0])
@pytest.mark.parametrize("backend", ["onnx", "torch"])
def test_vectors_without_direction_are_refused(
    tiny_folder: Path, copy_of: Copy, tmp_path: Path, value: float, backend: str
) -> None:
    def flat(weights: dict[str, Any]) -> None:
        for part in ("weight", "bias"):
            weights[f"encoder.layer.0.output.LayerNorm.{part}"].fill_(value)

    folder = copy_of(tiny_folder)
    change_weights(folder, flat)
    with pytest.raises(ModelError, match=r"finite numbers|length 1"):
        load(folder, tmp_path / "cache", backend).embed_documents(["the harbour"])


def test_a_cross_encoder_is_no_embedder(tiny_cross_encoder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="CARREL_RERANKER"):
        load(tiny_cross_encoder, tmp_path)


def test_a_folder_named_like_a_known_model_must_have_its_dimension(
    tiny_folder: Path, copy_of: Copy, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match="model table declare 1536"):
        load(copy_of(tiny_folder, "FRIDA"), tmp_path / "cache")


def test_a_cached_hub_name_is_found_without_a_network(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub._snapshot_download as snapshots
    import huggingface_hub.constants

    hub = tmp_path / "hub"
    repository = hub / "models--someone--tiny-model"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("0123abcd")
    (repository / "snapshots").mkdir()
    (repository / "snapshots" / "0123abcd").symlink_to(tiny_folder)
    for module in (huggingface_hub.constants, snapshots.constants):
        monkeypatch.setattr(module, "HF_HUB_CACHE", str(hub))
    found = find_folder("someone/tiny-model", setting="embedder", instead="embedded")
    assert found.name == "tiny-model"
    assert load(found.path, tmp_path / "cache").dimension == 16
    inside = str(repository / "snapshots" / "0123abcd")
    with pytest.raises(ModelError, match="CARREL_RERANKER"):
        find_folder("someone/other", setting="reranker", instead="none")
    assert ModelFolder(Path(inside), "x").pooling == "mean"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode_lasttoken": True}, "lasttoken"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, None),
        ({"pooling_mode": "mean", "include_prompt": False}, None),
        ({"pooling_mode": ["mean", "cls"]}, None),
        ({"pooling_mode": "cls"}, "cls"),
    ],
)
def test_pooling_is_read_in_old_and_new_form(
    tmp_path: Path, config: dict[str, object], expected: str | None
) -> None:
    kind = "sentence_transformers.models.Pooling"
    (tmp_path / "modules.json").write_text(json.dumps([{"type": kind, "path": "1_Pooling"}]))
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(config))
    assert ModelFolder(tmp_path, "x").pooling == expected


@pytest.mark.parametrize(
    ("config", "tokenizer", "own", "expected"),
    [
        ({"max_position_embeddings": 512}, {}, {}, 512),
        ({"max_position_embeddings": 512}, {"model_max_length": 256}, {}, 256),
        ({"max_position_embeddings": 512}, {}, {"max_seq_length": 128}, 128),
        ({"max_position_embeddings": 514, "model_type": "roberta", "pad_token_id": 1}, {}, {}, 512),
        ({}, {"model_max_length": 10**30}, {}, None),
        ({}, {}, {}, None),
    ],
)
def test_the_length_is_the_least_that_the_files_allow(
    tmp_path: Path, config: dict[str, object], tokenizer: object, own: object, expected: int | None
) -> None:
    files = {"config": config, "tokenizer_config": tokenizer, "sentence_bert_config": own}
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    assert ModelFolder(tmp_path, "x").max_tokens == expected


def as_pickle(folder: Path, weights: object) -> None:
    import torch

    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")


def test_weights_of_the_old_form_give_the_same_vectors(
    tiny_folder: Path, copy_of: Copy, tmp_path: Path
) -> None:
    from safetensors.torch import load_file

    folder = copy_of(tiny_folder)
    as_pickle(folder, load_file(folder / "model.safetensors"))
    old = load(folder, tmp_path / "cache").embed_query("the harbour")
    assert old @ load(tiny_folder, tmp_path / "cache").embed_query("the harbour") > 0.9999


class Payload:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.mark,))


@pytest.mark.parametrize("backend", ["auto", "torch"])
def test_a_pickle_runs_no_code(
    tiny_folder: Path, copy_of: Copy, tmp_path: Path, backend: str
) -> None:
    folder = copy_of(tiny_folder)
    as_pickle(folder, {"weight": Payload(tmp_path / "was-run")})
    with pytest.raises(ModelError, match="cannot be loaded"):
        load(folder, tmp_path / "cache", backend)
    assert not (tmp_path / "was-run").exists()


def test_a_bare_encoder_is_pooled_by_the_mean_where_it_is_not_known_otherwise(
    tiny_folder: Path, copy_of: Copy, tmp_path: Path
) -> None:
    bare, known = copy_of(tiny_folder), copy_of(tiny_folder, "bge-small-en-v1.5")
    for folder in (bare, known):
        (folder / "modules.json").unlink()
    found = load(bare, tmp_path / "cache", "onnx").embed_query("the harbour")
    assert found @ load(tiny_folder, tmp_path / "cache").embed_query("the harbour") > 0.9999
    with pytest.raises(ModelError, match=r"pools by cls, which a folder says in modules\.json"):
        load(known, tmp_path / "cache")
