"""Score which sentences of a user are worth a note, and which say of a change, by their vectors.

`scripts/train_memory.py` trains it on labelled sentences of four languages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from core.errors import ModelError
from models.embeddings import Embedder
from models.vectors import Vectors

FILE = Path(__file__).with_name("worth.npz")
CHANGES = FILE.with_name("changes.npz")  # what tells sentences that say of a change
MODEL = "multilingual-e5-small"  # whose vectors it was trained on
SCALE = 12.0  # of centred vectors, so that each number is about 1
DOUBT = 1.0  # taken from log odds where something else is likelier; chosen, not measured
CLEAR = (-6.0, 3.0)  # log odds of a change, at most; chosen, not measured
NEVER = -9.0  # log odds where nothing can be scored
Worth = Callable[[Sequence[str]], Sequence[float]]


class _Network(NamedTuple):
    mean: Vectors
    first: Vectors
    first_bias: Vectors
    last: Vectors
    last_bias: Vectors


@cache
def _network() -> _Network:
    with np.load(FILE, allow_pickle=False) as found:
        return _Network(*(found[name].astype(np.float32) for name in _Network._fields))


def doubting(worth: Worth) -> Worth:
    """Return what finds sentences less worth a note, as where a reply is waited for."""
    return lambda sentences: [one - DOUBT for one in worth(sentences)]


def worth_by(embedder: Embedder | None) -> Worth:
    """Return what gives the log odds that sentences are worth a note.

    NEVER without the embedder that it was trained with, or where that fails.
    """

    def odds(sentences: Sequence[str]) -> list[float]:
        if embedder is None or not embedder.model_id.startswith(MODEL):
            return [NEVER] * len(sentences)
        net = _network()
        try:
            vectors = embedder.embed_documents(sentences)
        except ModelError:
            return [NEVER] * len(sentences)
        hidden = np.maximum((vectors - net.mean) * SCALE @ net.first + net.first_bias, 0)
        found: list[float] = (hidden @ net.last + net.last_bias).tolist()
        return found

    return odds


@cache
def _changes() -> tuple[Vectors, Vectors, float]:
    with np.load(CHANGES, allow_pickle=False) as found:
        mean, weights = (found[name].astype(np.float32) for name in ("mean", "weights"))
        return mean, weights, float(found["constant"])


def change_odds(vector: Vectors) -> float:
    """Return the log odds that a sentence, by its vector, says that something changed."""
    mean, weights, constant = _changes()
    return float(np.clip((vector - mean) * SCALE @ weights + constant, *CLEAR))
