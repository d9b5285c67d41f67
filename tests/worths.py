"""What tells which sentences are worth a note, by the embedder that it was trained with."""

from __future__ import annotations

from collections.abc import Sequence

from core.settings import load_settings
from models.loading import open_embedded
from reasoning.worth import worth_by


def worth(sentences: Sequence[str]) -> Sequence[float]:
    """Return the log odds that sentences are worth a note."""
    return worth_by(open_embedded(load_settings()[0]))(sentences)
