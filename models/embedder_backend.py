"""Decide what runs an embedder: an exported ONNX file, or torch."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from models.embedded import PACKED
from models.folder import ModelFolder
from models.identity import EmbedderSpec
from models.onnx_cache import ExportError, ensure_onnx
from models.onnx_embedder import OnnxEmbedder, OnnxSpanEmbedder
from models.onnx_export import export_embedder
from models.onnx_session import OnnxSession, RunOptions
from models.torch_embedder import TorchEmbedder

Backend = Literal["auto", "onnx", "torch"]
AGREEMENT = 0.9999  # cosine
PROBES = (
    "The harbour is open.\nA quiet forest.",
    "Где находится библиотека? 图书馆在哪里?",
    "",
    "def open(path): return 42  # 3.14 ≈ π",
    "one two three four five six seven eight nine ten " * 100,
)


def open_backend(
    folder: ModelFolder, spec: EmbedderSpec, options: RunOptions, cache_dir: Path, backend: Backend
) -> OnnxEmbedder | TorchEmbedder:
    """Load the model with ONNX or torch; "auto" takes ONNX where it agrees with torch.

    Raises ExportError when "onnx" is wanted and cannot be had.
    """

    def open_onnx(path: Path) -> OnnxEmbedder:
        kind = OnnxSpanEmbedder if folder.pooling == "mean" else OnnxEmbedder
        return kind(OnnxSession(path, folder, options), spec)

    if (folder.path / PACKED).is_file():
        from models.packed_embedder import open_packed  # which imports numpy

        return open_packed(folder, spec, options, cache_dir, backend)
    if backend == "torch":
        return TorchEmbedder(folder, spec, options)
    target = cache_dir / f"embedder-{spec.digest[:16]}-v3.onnx"
    try:
        ensure_onnx(
            target,
            lambda path: export_embedder(folder, path),
            lambda path: _check_agreement(open_onnx(path), TorchEmbedder(folder, spec, options)),
        )
    except ExportError:
        if backend == "onnx":
            raise
        return TorchEmbedder(folder, spec, options)
    return open_onnx(target)


def _check_agreement(exported: OnnxEmbedder, original: TorchEmbedder) -> None:
    pairs = zip(
        [*exported.embed_documents(PROBES), exported.embed_query(PROBES[0])],
        [*original.embed_documents(PROBES), original.embed_query(PROBES[0])],
        strict=True,
    )
    worst = min(float(ours @ theirs) for ours, theirs in pairs)
    if worst < AGREEMENT:
        raise ExportError(f"the exported vectors differ from torch's (cosine {worst:.5f})")
