"""Vectors of the sentences of chunks: int8 rows, compared by cosine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stores.segments.types import Floats, Integers


@dataclass(frozen=True)
class SentenceVectors:
    """Hold int8 vectors of shape (m, dimension), row by row of the part.

    The sentences of row i are those from `ends[i - 1]` (0 for the first row) to `ends[i]`; their
    scale does not matter, since `norms` are kept.
    """

    values: Integers
    norms: Floats
    ends: Integers

    def best(self, rows: Integers, vector: Floats) -> Floats:
        """Return the best cosine over the sentences of each row, NaN where it has none."""
        found = np.full(len(rows), np.nan, dtype=np.float32)
        ends = self.ends[rows]
        starts = np.where(rows > 0, self.ends[rows - 1], 0)
        counts = ends - starts
        some = np.flatnonzero(counts)
        if not len(some):
            return found
        counts, starts = counts[some], starts[some]
        firsts = np.cumsum(counts) - counts
        places = np.arange(counts.sum()) + np.repeat(starts - firsts, counts)
        cosines = self.values[places].astype(np.float32) @ vector / self.norms[places]
        found[some] = np.maximum.reduceat(cosines, firsts)
        return found

    def rows(self, row: int) -> Floats:
        """Return the unit vectors of the sentences of one row, shape (m, dimension)."""
        held = slice(int(self.ends[row - 1]) if row else 0, int(self.ends[row]))
        units = self.values[held].astype(np.float32) / self.norms[held, None]
        return np.asarray(units)


def sentence_rows(
    blobs: Sequence[bytes | None], dimension: int
) -> tuple[Integers, Floats, Integers]:
    """Return vectors (m, dimension), their norms and how many each blob holds.

    A blob that is not a whole number of vectors holds none; a vector without direction has norm 1.
    """
    good = [b if b and dimension and not len(b) % dimension else b"" for b in blobs]
    joined = np.frombuffer(b"".join(good), dtype=np.int8)
    values = joined.reshape(-1, dimension) if dimension else joined.reshape(0, 0)
    wide = values.astype(np.float32)
    norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    norms[norms == 0] = 1
    counts = np.array([len(b) // dimension if dimension else 0 for b in good], dtype=np.int64)
    return values, norms.astype(np.float32), counts
