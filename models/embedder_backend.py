"""Decide what runs an embedder: an exported ONNX file, or torch."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from models.digest import EmbedderSpec
from models.embedded import PACKED
from models.folder import ModelFolder
from models.huggingface_embedder import HuggingFaceEmbedder, open_folder
from models.onnx_embedder import OnnxEmbedder, OnnxSpanEmbedder
from models.onnx_export import export_embedder
from models.onnx_session import ExportError, OnnxSession, RunOptions, ensure_onnx

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
) -> OnnxEmbedder | HuggingFaceEmbedder:
    """Load the model with ONNX or torch; "auto" takes ONNX on the CPU where it agrees with torch.

    Raises ExportError when "onnx" is wanted and cannot be had.
    """

    def open_onnx(path: Path) -> OnnxEmbedder:
        kind = OnnxSpanEmbedder if folder.pooling == "mean" else OnnxEmbedder
        return kind(OnnxSession(path, folder, options), spec)

    if (folder.path / PACKED).is_file():
        from models.packed_embedder import open_packed  # which imports numpy

        return open_packed(folder, spec, options, cache_dir, backend)
    if backend == "onnx" and options.device != "cpu":
        raise ExportError(
            "ONNX files run on the CPU",
            value=f"embedder_device={options.device}",
            hint="set embedding.backend=auto, or embedding.device=cpu",
        )
    if backend == "torch" or options.device != "cpu":
        return open_folder(folder, spec, options)
    target = cache_dir / f"embedder-{spec.digest[:16]}-v3.onnx"
    try:
        ensure_onnx(
            target,
            lambda path: export_embedder(folder, path),
            lambda path: _check_agreement(open_onnx(path), open_folder(folder, spec, options)),
        )
    except ExportError:
        if backend == "onnx":
            raise
        return open_folder(folder, spec, options)
    return open_onnx(target)


def _check_agreement(exported: OnnxEmbedder, original: HuggingFaceEmbedder) -> None:
    pairs = zip(
        [*exported.embed_documents(PROBES), exported.embed_query(PROBES[0])],
        [*original.embed_documents(PROBES), original.embed_query(PROBES[0])],
        strict=True,
    )
    worst = min(float(ours @ theirs) for ours, theirs in pairs)
    if worst < AGREEMENT:
        raise ExportError(f"the exported vectors differ from torch's (cosine {worst:.5f})")
