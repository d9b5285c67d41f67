"""The logit of each pair of texts, computed by an exported ONNX file or by torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core.errors import ModelError
from models.folder import ModelFolder
from models.onnx_session import OnnxSession, RunOptions
from models.ranking_head import check_activation
from models.torch_loading import torch_loading
from models.vectors import Vectors

Pairs = Sequence[tuple[str, str]]


def pair_inputs(folder: ModelFolder) -> list[str]:
    """Return the model's inputs; without segments a model has at most one type of token."""
    typed = int(folder.config.get("type_vocab_size") or 0) > 1
    return ["input_ids", "attention_mask", *(["token_type_ids"] if typed else [])]


class OnnxLogits:
    """Run an exported cross-encoder."""

    backend = "onnx"

    def __init__(self, onnx: Path, folder: ModelFolder, options: RunOptions) -> None:
        """Open the file."""
        self._session = OnnxSession(onnx, folder, options)

    def __call__(self, pairs: Pairs) -> Vectors:
        """Return logits of shape (len(pairs),)."""
        import numpy as np

        found = np.empty(len(pairs), dtype=np.float32)
        for rows, (values,) in self._session.run(self._session.encode(pairs), ["logits"]):
            found[rows] = values[:, 0]
        return found


class TorchLogits:
    """Run a cross-encoder through sentence-transformers on the CPU."""

    backend = "torch"

    def __init__(self, folder: ModelFolder, options: RunOptions) -> None:
        """Load the folder; code from a repository is never run."""
        import torch
        from sentence_transformers import CrossEncoder

        torch.set_num_threads(options.threads)
        with torch_loading(folder):
            self._model = CrossEncoder(
                str(folder.path),
                device="cpu",
                local_files_only=True,
                trust_remote_code=False,
                max_length=options.max_tokens,
            )
        check_activation(type(self._model.activation_fn).__name__, folder)
        self._batch_size = options.batch_size
        self._name = folder.name

    def __call__(self, pairs: Pairs) -> Vectors:
        """Return logits of shape (len(pairs),)."""
        import torch

        readable = [
            tuple(text.encode("utf-8", "replace").decode() for text in pair) for pair in pairs
        ]
        try:
            found: Vectors = self._model.predict(
                readable,
                batch_size=self._batch_size,
                activation_fn=torch.nn.Identity(),
                show_progress_bar=False,
            )
        except Exception as error:  # torch raises RuntimeError, IndexError and its own
            raise ModelError(
                "the model failed while it ran",
                value=f"{self._name}: {str(error).partition(chr(10))[0]}",
                hint="check the model's files, or score fewer pairs per batch",
            ) from error
        return found
