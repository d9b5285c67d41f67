"""Embedders that run in torch through sentence-transformers: all that ONNX does not cover."""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import ModelError
from models.folder import ModelFolder
from models.identity import EmbedderSpec
from models.onnx_session import RunOptions
from models.torch_loading import POOLER, torch_loading
from models.vectors import Vectors, checked_rows


class TorchEmbedder:
    """Run any sentence-transformers folder on the CPU; code from a repository is never run.

    sentence-transformers is called directly: langchain-huggingface turns line breaks into blanks
    and every vector into a list.
    """

    backend = "torch"

    def __init__(self, folder: ModelFolder, spec: EmbedderSpec, options: RunOptions) -> None:
        """Load the folder."""
        import torch
        from sentence_transformers import SentenceTransformer

        torch.set_num_threads(options.threads)
        with torch_loading(folder, POOLER):
            self._model = SentenceTransformer(
                str(folder.path), device="cpu", local_files_only=True, trust_remote_code=False
            )
            self._model.max_seq_length = options.max_tokens
        self._spec = spec
        self._batch_size = options.batch_size
        self.model_id = spec.model_id
        self.languages = spec.languages
        self.similarity = spec.similarity
        self.dimension: int = self._raw(["probe"], "").shape[1]

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed passages; each is cut at the length the model was made for."""
        return self._embed(texts, self._spec.passage_prompt)

    def embed_query(self, text: str) -> Vectors:
        """Embed one question."""
        vector: Vectors = self._embed([text], self._spec.query_prompt)[0]
        return vector

    def _embed(self, texts: Sequence[str], prompt: str) -> Vectors:
        import numpy as np

        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        return checked_rows(self._raw(texts, prompt), self.dimension, self.model_id)

    def _raw(self, texts: Sequence[str], prompt: str) -> Vectors:
        readable = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        try:
            rows: Vectors = self._model.encode(
                readable,
                prompt=prompt,
                batch_size=self._batch_size,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
        except Exception as error:  # torch raises RuntimeError, IndexError and its own
            raise ModelError(
                "the model failed while it ran",
                value=f"{self.model_id}: {str(error).partition(chr(10))[0]}",
                hint="check the model's files, or embed fewer texts per batch",
            ) from error
        return rows
