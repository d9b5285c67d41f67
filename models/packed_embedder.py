"""Open the multilingual embedder out of its packed weights, with ONNX and without torch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from core.errors import ModelError
from models.digest import EmbedderSpec
from models.embedded import CARRIERS, EMBEDDED, ENGLISH, PACKED
from models.folder import ModelFolder
from models.onnx_embedder import OnnxSpanEmbedder
from models.onnx_session import OnnxSession, RunOptions, ensure_onnx
from models.packed_weights import PackedWeights, PieceTokenizer, export_pieces
from models.reader import SentenceReader, open_reader
from models.table import published_weights
from models.vectors import SpanPassage, Vectors

VERSION = 1  # of the files in the cache; another one makes them again


class PackedEmbedder(OnnxSpanEmbedder):
    """Embed with the multilingual model, and read with the reader made from it."""

    reads = True

    def __init__(
        self, session: OnnxSession, spec: EmbedderSpec, opened: Callable[[], SentenceReader]
    ) -> None:
        """Take what OnnxSpanEmbedder takes; the reader is opened when it is first asked."""
        super().__init__(session, spec)
        self._opened = opened
        self._reader: SentenceReader | None = None
        self._opening = threading.Lock()

    def read(self, question: str, passages: Sequence[SpanPassage]) -> list[Vectors]:
        """Return what SentenceReader returns."""
        with self._opening:
            if self._reader is None:
                self._reader = self._opened()
        return self._reader.read(question, passages)


def _export_onnx(weights: PackedWeights, target: Path) -> None:
    from models.packed_export import export_packed  # late: once for each user, and `onnx` is large

    export_packed(weights, target)


def open_packed(
    folder: ModelFolder, spec: EmbedderSpec, options: RunOptions, cache_dir: Path, backend: str
) -> PackedEmbedder:
    """Open the multilingual embedded model; raise ModelError for weights that are not its own."""
    path = folder.path / PACKED
    hint = f"reinstall the package {CARRIERS[EMBEDDED].package}"
    if spec.digest != published_weights()[EMBEDDED]["sha256"]:
        rule = f"the weights of '{EMBEDDED}' are damaged or of another build"
        raise ModelError(rule, value=str(path), hint=hint)
    if backend == "torch":
        raise ModelError(
            f"the model '{EMBEDDED}' runs as ONNX only",
            value="embedder_backend=torch",
            hint=f"set embedding.backend=auto, or embedder={ENGLISH}",
        )

    def export(write: Callable[[PackedWeights, Path], None], kind: str) -> Path:
        target = cache_dir / f"embedder-{spec.digest[:16]}-v{VERSION}.{kind}"
        return ensure_onnx(target, lambda at: write(PackedWeights(path), at), lambda _: None)

    tokenizer = PieceTokenizer(export(export_pieces, "model"), spec.max_tokens)
    alone = replace(options, batch_size=1)  # as its int8 ranges ask for
    onnx = export(_export_onnx, "onnx")
    opened = partial(open_reader, path, spec.digest, tokenizer, alone, cache_dir)
    return PackedEmbedder(OnnxSession(onnx, folder, alone, tokenizer), spec, opened)
