"""Score pairs of question and passage with a cross-encoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from models.embedder_backend import Backend

NO_RERANKER = "none"


class Reranker(Protocol):
    """Judge how well passages answer a question; `model_id` names the model and its weights."""

    @property
    def model_id(self) -> str:
        """Return the name of the model and its weights."""

    @property
    def languages(self) -> frozenset[str] | None:
        """Return the ISO 639-1 languages the model was made for, None for any."""

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return one score per passage, 0..1, higher is better."""


def load_reranker(
    name: str,
    *,
    cache_dir: Path,
    threads: int,
    batch_size: int,
    max_tokens: int,
    backend: Backend = "auto",
) -> Reranker | None:
    """Return the cross-encoder that settings name, a folder or a cached hub model; None for "none".

    Pairs are cut at `max_tokens`, or at the model's own length where that is less. Raises
    ModelError for whatever keeps the model from giving scores.
    """
    if name == NO_RERANKER:
        return None
    from models.cross_encoder import open_cross_encoder

    return open_cross_encoder(
        name,
        cache_dir=cache_dir,
        threads=threads,
        batch_size=batch_size,
        max_tokens=max_tokens,
        backend=backend,
    )
