"""Build candidates by hand, as a hot search returns them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stores.segments.types import Candidates


def candidates(
    bm25: Sequence[float],
    cosine: Sequence[float] | None = None,
    *,
    sentence: Sequence[float] | None = None,
    mean: float = 0.1,
    deviation: float = 0.1,
    visible: int = 1000,
    ids: Sequence[str] | None = None,
) -> Candidates:
    """Return candidates called a, b, c … in this order."""
    names = list(ids) if ids is not None else [chr(ord("a") + n) for n in range(len(bm25))]
    return Candidates(
        chunk_ids=names,
        bm25=np.array(bm25, dtype=np.float32),
        cosine=None if cosine is None else np.array(cosine, dtype=np.float32),
        sentence=None if sentence is None else np.array(sentence, dtype=np.float32),
        best_bm25=max(bm25, default=0.0),
        mean=mean,
        deviation=deviation,
        visible=visible,
        source="segment",
    )
