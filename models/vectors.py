"""Vectors as embedders give them: float32 rows of length 1, checked before anyone stores them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from core.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
else:
    Vectors = Any

UNIT_TOLERANCE = 1e-3  # half-precision weights keep three digits


class Passage(NamedTuple):
    """Hold consecutive sentences of a text under its heading; `spans` are in characters."""

    heading: str
    text: str
    spans: tuple[tuple[int, int], ...]


def checked_rows(rows: Vectors, dimension: int, model_id: str) -> Vectors:
    """Return rows as float32 of shape (n, dimension), all finite and of length 1.

    Raises ModelError for another dimension, NaN, infinity and rows of length 0.
    """
    import numpy as np

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
    import numpy as np

    vectors = np.asarray(rows, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return checked_rows(scaled, vectors.shape[1], model_id)
