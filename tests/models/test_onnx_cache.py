"""Exported files are made once, kept only when they agree with torch, and replaced whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import models.embeddings
from core.errors import ModelError
from models.embeddings import load_embedder
from models.onnx_runtime import ExportError, ensure_onnx


def kept(cache: Path) -> list[str]:
    return sorted(path.suffix for path in cache.iterdir() if path.suffix != ".json")


def test_a_file_is_made_once(tmp_path: Path) -> None:
    made: list[Path] = []

    def export(path: Path) -> None:
        made.append(path)
        path.write_bytes(b"onnx")

    target = tmp_path / "cache" / "a.onnx"
    for _ in range(2):
        assert ensure_onnx(target, export, lambda path: None) == target
    assert len(made) == 1
    assert target.read_bytes() == b"onnx"
    assert kept(tmp_path / "cache") == [".onnx"]


def test_an_interrupted_export_leaves_nothing(tmp_path: Path) -> None:
    def export(path: Path) -> None:
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensure_onnx(tmp_path / "cache" / "a.onnx", export, lambda path: None)
    assert kept(tmp_path / "cache") == []


def test_a_refusal_is_kept_with_its_reason(tmp_path: Path) -> None:
    tried: list[Path] = []

    def export(path: Path) -> None:
        tried.append(path)
        raise ExportError("too odd")

    for _ in range(2):
        with pytest.raises(ExportError, match="too odd"):
            ensure_onnx(tmp_path / "a.onnx", export, lambda path: None)
    assert len(tried) == 1
    assert kept(tmp_path) == [".refused"]


def test_a_damaged_cached_file_says_what_to_do(tiny_folder: Path, tmp_path: Path) -> None:
    given = {"cache_dir": tmp_path, "threads": 1, "batch_size": 2}
    load_embedder(str(tiny_folder), **given)
    cached = next(tmp_path.glob("*.onnx"))
    cached.write_bytes(b"\x00" * 100)
    with pytest.raises(ModelError, match="Delete it") as caught:
        load_embedder(str(tiny_folder), **given)
    assert caught.value.value == str(cached)
    cached.unlink()
    assert load_embedder(str(tiny_folder), **given).dimension == 16


def test_vectors_that_differ_are_torchs(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An export that pools otherwise than the model stands for any that goes wrong."""
    whole = models.embeddings.export_embedder

    def export_wrong(folder: object, path: Path) -> None:
        import onnx

        whole(folder, path)
        model = onnx.load(str(path))
        for weight in model.graph.initializer:
            values = onnx.numpy_helper.to_array(weight)
            if values.ndim == 2 and values.dtype == np.float32:
                weight.CopyFrom(onnx.numpy_helper.from_array(values[::-1].copy(), weight.name))
        onnx.save(model, str(path))

    monkeypatch.setattr(models.embeddings, "export_embedder", export_wrong)
    given = {"cache_dir": tmp_path, "threads": 1, "batch_size": 2}
    found = load_embedder(str(tiny_folder), **given)
    assert type(found).__name__ == "HuggingFaceEmbedder"
    with pytest.raises(ModelError, match="differ from torch"):
        load_embedder(str(tiny_folder), backend="onnx", **given)
    assert kept(tmp_path) == [".refused"]


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (("mpnet",), "type mpnet"),
        (("bert", "max"), "pool otherwise"),
        (("bert", "mean", 8), "parts"),
    ],
)
def test_what_onnx_does_not_cover_is_named(
    make_model: Callable[..., Path], tmp_path: Path, model: tuple[object, ...], reason: str
) -> None:
    with pytest.raises(ModelError, match=reason):
        load_embedder(
            str(make_model(*model)), cache_dir=tmp_path, threads=1, batch_size=2, backend="onnx"
        )


def test_a_cache_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ExportError, match="CARREL_CACHE"):
        ensure_onnx(tmp_path / "file" / "a.onnx", lambda path: None, lambda path: None)

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(ExportError, match="No space left"):
        ensure_onnx(tmp_path / "a.onnx", full, lambda path: None)
    assert ensure_onnx(tmp_path / "a.onnx", lambda path: None, lambda path: None).exists()
