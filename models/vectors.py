"""Vectors as embedders give them: float32 rows of length 1, checked before anyone stores them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.errors import ModelError

if TYPE_CHECKING:
    Vectors = NDArray[np.float32]
else:
    Vectors = Any

UNIT_TOLERANCE = 1e-3  # half-precision weights keep three digits


class SpanPassage(NamedTuple):
    """Hold consecutive sentences of a text under its heading; `spans` are in characters."""

    heading: str
    text: str
    spans: tuple[tuple[int, int], ...]


def checked_rows(rows: Vectors, dimension: int, model_id: str) -> Vectors:
    """Return rows as float32 of shape (n, dimension), all finite and of length 1.

    Raises ModelError for another dimension, NaN, infinity and rows of length 0.
    """
    vectors = np.asarray(rows, dtype=np.float32)
    if vectors.ndim != 2 or vectors.shape[1] != dimension:
        raise ModelError(
            f"an embedder must give rows of {dimension} numbers",
            value=f"{model_id} gave shape {vectors.shape}",
            hint="check the model's files",
        )
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    if not np.isfinite(lengths).all():
        raise ModelError(
            "an embedding must be finite numbers",
            value=model_id,
            hint="the weights are damaged or too small a number format; install the model again",
        )
    if (np.abs(lengths - 1) > UNIT_TOLERANCE).any():
        raise ModelError(
            "an embedding must have length 1, not 0",
            value=model_id,
            hint="the weights are damaged; install the model again",
        )
    return vectors


def unit_rows(rows: Vectors, model_id: str) -> Vectors:
    """Scale rows to length 1; raise ModelError for those that have no direction."""
    vectors = np.asarray(rows, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return checked_rows(scaled, vectors.shape[1], model_id)


def scale_rows(rows: Vectors) -> Vectors:
    """Scale rows to length 1; those without a direction stay as short as they are."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


# Beyond this many, every n-th one is asked whom it is like: their similarities take 4 MB.
MOST_COMPARED = 1000


def central(
    vectors: Vectors,
    most: int,
    begin: Sequence[int] = (),
    worth: Vectors | None = None,
    weights: Vectors | None = None,
) -> list[int]:
    """Return the places of up to `most` unit vectors: those of `begin`, then the most central.

    Greedy facility location: the sum over all of their similarity to the nearest one chosen grows
    by as much as it can, so what says the same as a chosen one is not chosen. `worth` says how much
    of its gain each counts, 0..1, `weights` how much it is to be near to each. Where there are no
    vectors, only zeros, the first ones are as good as any.
    """
    if not vectors.any():
        return list(range(min(most, len(vectors))))
    step = -(-len(vectors) // MOST_COMPARED)
    similarities = vectors @ vectors[::step].T
    reached = np.full(similarities.shape[1], -1.0, dtype=np.float32)
    counted = np.ones(len(vectors), dtype=np.float32) if weights is None else weights
    chosen = list(begin)
    for place in chosen:
        reached = np.maximum(reached, similarities[place])
    while len(chosen) < min(most, len(vectors)):
        gains = np.maximum(similarities - reached, 0) @ counted[::step]
        gains *= 1 if worth is None else worth
        gains[chosen] = -1
        best = int(gains.argmax())
        if chosen and gains[best] <= 0:
            break
        chosen.append(best)
        reached = np.maximum(reached, similarities[best])
    return chosen
