"""Data directories of many chunks in minutes: real texts, made-up vectors of the real model's name.

The vectors depend on the texts alone, so every check of them holds; only what is near to what means
nothing. Sentences have vectors too, since they are part of what is stored and checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.ingest_corpus import InstantEmbedder, write_copies
from core.settings import load_settings
from ingest.pipeline import Pipeline
from models.embeddings import Vectors
from models.loading import open_embedder
from models.onnx_runtime import Span
from stores.store import Store

FEW = 175  # documents of each data set in the small directory


class InstantSpanEmbedder(InstantEmbedder):
    """Give texts and their sentences random unit vectors under another model's name."""

    def __init__(self, model_id: str, dimension: int) -> None:
        """Stand in for a model."""
        self.model_id = model_id
        self.dimension = dimension

    def embed_passages(
        self, texts: Sequence[str], spans: Sequence[Sequence[Span]]
    ) -> tuple[Vectors, list[Vectors]]:
        """Return a row per text, and per text a row per span."""
        parts = [
            self.embed_documents([f"{start} {text[start:end]}" for start, end in wanted])
            for text, wanted in zip(texts, spans, strict=True)
        ]
        return self.embed_documents(texts), [np.ascontiguousarray(part) for part in parts]


def fill(data: Path, folder: Path, corpus: Path, *, copies: int, limit: int | None) -> int:
    """Ingest the data sets into a new directory; return the number of chunks."""
    write_copies(data, corpus, copies, limit=limit)
    settings, _ = load_settings({"data": folder, "reasoner": "rules", "max_file_mb": 512})
    real = open_embedder(settings)
    embedder = InstantSpanEmbedder(real.model_id, real.dimension)
    with Store(settings, real.model_id, create=True) as store:
        target = store.intake.open_collection("default", "default", None)
        return Pipeline(store, embedder, settings, target).run([corpus]).chunks
