"""How far the vector channel can be trusted for one query, from what the search itself shows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.settings import Settings
from stores.segments.types import Candidates

WITNESSES = 5  # best hits of the text channel that are asked


@dataclass(frozen=True)
class Trust:
    """Say what share of its weight the vector channel keeps, 0..1, and what speaks for it.

    `peak` is how far its best hit stands out, in multiples of what the best of as many random
    numbers would, √(2 ln n). `agreement` is how far the best hits by words stand out among the
    vectors, as a share of the best vector hit; about 0 when neither knows of the other.
    """

    share: float = 1.0
    peak: float = 0.0
    agreement: float = 0.0


def judge_vectors(candidates: Candidates, settings: Settings) -> Trust:
    """Judge the vector channel by its score shape and its agreement with the text channel.

    Measured: an embedder that cannot read the text has a peak below 1 and an agreement near 0.2,
    one that can has 1.1 to 1.8 and 0.5 to 0.8. Either is enough: a question in other words
    than the documents agrees little and peaks high, a broad one peaks low and agrees. Too few rows,
    or no hit by words, tell nothing, and the channel is trusted.
    """
    import numpy as np

    cosine = candidates.cosine
    few = candidates.visible < settings.trust_min_rows
    if cosine is None or few or candidates.deviation <= 0 or not (candidates.bm25 > 0).any():
        return Trust()
    heights = np.nan_to_num((cosine - candidates.mean) / candidates.deviation, nan=0.0)
    best = float(heights.max())
    if best <= 0:
        return Trust(share=0.0)
    witnesses = np.argsort(-candidates.bm25, kind="stable")[:WITNESSES]
    voices = candidates.bm25[witnesses]
    agreement = float(np.average(heights[witnesses], weights=voices)) / best
    peak = best / math.sqrt(2.0 * math.log(candidates.visible))
    share = (peak - settings.trust_peak) / settings.trust_peak_span
    share += (agreement - settings.trust_agreement) / settings.trust_agreement_span
    return Trust(min(1.0, max(0.0, share)), peak, agreement)
