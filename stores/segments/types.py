"""What a search of segments returns, and the arrays it is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from stores.segments.postings import Postings
    from stores.segments.rows import SentenceVectors

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]
Booleans = NDArray[np.bool_]
Names = NDArray[np.bytes_]

Progress = Callable[[int, int], None]  # rows done, rows in all
TermWeights = Mapping[str, float]
# Gives, in the place of an array of vectors, what reads those of rows with these ids.
Stored = Callable[[Integers], Any]


@dataclass(frozen=True)
class Candidates:
    """Hold the best visible chunks of each channel, in the order of their ingest.

    `bm25` is exact for every candidate, 0 where no term matches. `cosine` is exact, NaN where a
    chunk has no vector, None without a question vector. `sentence` is the best cosine over the
    chunk's sentences, or the chunk's own where it has none. `best_bm25`, `mean` and `deviation` of
    the cosine are over all visible rows, `visible` counts them. `source` is "segment" where words
    were counted in arrays, "index" where FTS5 answered; `notes` say what was degraded.
    """

    chunk_ids: list[str]
    bm25: Floats
    cosine: Floats | None
    sentence: Floats | None
    best_bm25: float
    mean: float
    deviation: float
    visible: int
    source: Literal["segment", "index"]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class IndexedRows:
    """Hold n rows of a collection, ordered by row id.

    `ids` and `documents` are row ids (int64), `vectors` has shape (n, dimension) with NaN rows
    where `has_vector` is False. `postings` is None where FTS5 answers for words.
    """

    ids: Integers
    documents: Integers
    chunk_ids: Names
    vectors: Floats
    has_vector: Booleans
    sentences: SentenceVectors
    postings: Postings | None

    @property
    def high(self) -> int:
        """Return the highest row id, 0 when there are no rows."""
        return int(self.ids[-1]) if len(self.ids) else 0
