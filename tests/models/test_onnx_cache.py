"""Exported files are made once, kept only when they agree with torch; texts go in batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import embedder_of

import models.embeddings
from core.errors import ModelError
from models.onnx_runtime import PADDING, ExportError, batches, ensure_onnx


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
    embedder_of(tiny_folder, tmp_path)
    cached = next(tmp_path.glob("*.onnx"))
    cached.write_bytes(b"\x00" * 100)
    with pytest.raises(ModelError, match="Delete it") as caught:
        embedder_of(tiny_folder, tmp_path)
    assert caught.value.value == str(cached)
    cached.unlink()
    assert embedder_of(tiny_folder, tmp_path).dimension == 16


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
    found = embedder_of(tiny_folder, tmp_path)
    assert type(found).__name__ == "HuggingFaceEmbedder"
    with pytest.raises(ModelError, match="differ from torch"):
        embedder_of(tiny_folder, tmp_path, backend="onnx")
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
        embedder_of(make_model(*model), tmp_path, backend="onnx")


def test_a_cache_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ExportError, match="CARREL_CACHE"):
        ensure_onnx(tmp_path / "file" / "a.onnx", lambda path: None, lambda path: None)

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(ExportError, match="No space left"):
        ensure_onnx(tmp_path / "a.onnx", full, lambda path: None)
    assert ensure_onnx(tmp_path / "a.onnx", lambda path: None, lambda path: None).exists()


@given(st.lists(st.integers(1, 512), max_size=60), st.integers(1, 16))
def test_every_text_is_in_one_batch_that_is_padded_little(lengths: list[int], most: int) -> None:
    found = list(batches(lengths, most))
    assert sorted(place for batch in found for place in batch) == list(range(len(lengths)))
    for batch in found:
        sizes = [lengths[place] for place in batch]
        assert 1 <= len(batch) <= most
        assert max(sizes) * len(sizes) <= (1 + PADDING) * sum(sizes)
    ends = [lengths[batch[-1]] for batch in found]
    assert ends == sorted(ends)


def test_equal_lengths_fill_their_batches() -> None:
    assert [len(batch) for batch in batches([20] * 33, 16)] == [16, 16, 1]
    assert list(batches([], 16)) == []
