"""A model that is missing, incomplete, damaged or foreign is one clear line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import ModelError
from models.embeddings import Embedder, load_embedder
from models.folder import ModelFolder, find_folder

Copy = Callable[..., Path]


def load(folder: Path, cache: Path, backend: str = "auto") -> Embedder:
    return load_embedder(str(folder), cache_dir=cache, threads=1, batch_size=4, backend=backend)


def edit(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def without_config(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "modules.json").unlink()


def without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def corrupt_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\xff" * 4096)


def cut_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-64])


def bad_json(folder: Path) -> None:
    (folder / "modules.json").write_text("[{")


def list_for_config(folder: Path) -> None:
    (folder / "config.json").write_text("[]")


def foreign_module(folder: Path) -> None:
    rows = json.loads((folder / "modules.json").read_text())
    rows[0]["type"] = "custom_st.Transformer"
    (folder / "modules.json").write_text(json.dumps(rows))
    (folder / "custom_st.py").write_text("raise SystemExit('code of a model was run')")


def foreign_architecture(folder: Path) -> None:
    edit(
        folder / "config.json",
        architectures=["OwnBertModel"],
        auto_map={"AutoModel": "own.OwnBertModel"},
    )
    (folder / "own.py").write_text("raise SystemExit('code of a model was run')")


def bad_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text('{"model": {}}')


def other_pooling_width(folder: Path) -> None:
    path = next(folder.glob("1_*/config.json"))
    edit(path, embedding_dimension=24)


DAMAGES = {
    without_config: "needs config.json",
    without_weights: "needs its weights",
    corrupt_weights: "cannot be loaded",
    cut_weights: "cannot be loaded",
    bad_json: "must be JSON",
    list_for_config: "must be JSON",
    foreign_module: "program code is never run",
    foreign_architecture: "program code is never run",
    bad_tokenizer: "tokenizer.json cannot be read|cannot be loaded",
    other_pooling_width: "declare 24 numbers",
}


@pytest.mark.parametrize("backend", ["auto", "torch"])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_folder_is_one_line(
    tiny_folder: Path, copy_of: Copy, tmp_path: Path, damage: Callable[[Path], None], backend: str
) -> None:
    folder = copy_of(tiny_folder)
    damage(folder)
    with pytest.raises(ModelError, match=DAMAGES[damage]) as caught:
        load(folder, tmp_path / "cache", backend)
    assert "\n" not in str(caught.value)
    assert caught.value.hint


def test_missing_tensors_are_never_filled_with_random_numbers(
    tiny_folder: Path, copy_of: Copy, tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    folder = copy_of(tiny_folder)
    weights = load_file(folder / "model.safetensors")
    weights.pop("encoder.layer.0.output.dense.weight")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    for backend in ("auto", "onnx", "torch"):
        with pytest.raises(ModelError, match="weights are missing"):
            load(folder, tmp_path / "cache", backend)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0])
@pytest.mark.parametrize("backend", ["onnx", "torch"])
def test_vectors_without_direction_are_refused(
    tiny_folder: Path, copy_of: Copy, tmp_path: Path, value: float, backend: str
) -> None:
    from safetensors.torch import load_file, save_file

    folder = copy_of(tiny_folder)
    weights = load_file(folder / "model.safetensors")
    for part in ("weight", "bias"):
        weights[f"encoder.layer.0.output.LayerNorm.{part}"].fill_(value)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
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
    tmp_path: Path,
    config: dict[str, object],
    tokenizer: dict[str, object],
    own: dict[str, object],
    expected: int | None,
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps(own))
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


def test_a_bare_encoder_of_a_known_cls_model_is_refused(
    tiny_folder: Path, copy_of: Copy, tmp_path: Path
) -> None:
    folder = copy_of(tiny_folder, "bge-small-en-v1.5")
    (folder / "modules.json").unlink()
    with pytest.raises(ModelError, match=r"pools by cls, which a folder says in modules\.json"):
        load(folder, tmp_path / "cache")


def test_a_bare_encoder_is_pooled_by_the_mean(
    tiny_folder: Path, copy_of: Copy, tmp_path: Path
) -> None:
    folder = copy_of(tiny_folder)
    (folder / "modules.json").unlink()
    bare = load(folder, tmp_path / "cache", "onnx").embed_query("the harbour")
    assert bare @ load(tiny_folder, tmp_path / "cache").embed_query("the harbour") > 0.9999
