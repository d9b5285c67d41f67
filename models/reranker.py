"""Score pairs of question and passage with a cross-encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


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
