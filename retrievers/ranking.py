"""Rank the candidates of one search: fuse the channels and keep what each may propose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from core.settings import Settings
from retrievers import fusion
from retrievers.channels import SENTENCE, TEXT, VECTOR
from retrievers.fusion import Scores
from stores.segments.types import Candidates


@dataclass(frozen=True)
class Ranked:
    """Hold the ranking: chunk ids best first with their score, and each channel's raw scores."""

    ranking: list[tuple[str, float]]
    channels: dict[str, dict[str, float]]


def rank_candidates(
    candidates: Candidates,
    settings: Settings,
    limits: Mapping[str, int],
    *,
    cutoff: float,
) -> Ranked:
    """Fuse the channels over the candidates, best first, ties in the order of the candidates.

    Of each channel the first `limits` hits are kept, of BM25 only those that reach `cutoff` of its
    best. A channel alone keeps its own scores.
    """
    if not candidates.chunk_ids:
        return Ranked([], {})
    text = candidates.bm25.astype(np.float64)
    least = cutoff * candidates.best_bm25
    text_found = fusion.best_mask(text, limits.get(TEXT, 0), max(0.0, np.nextafter(least, 0)))
    if candidates.cosine is None:
        return _ranked(candidates, text, text_found, settings)
    vector = candidates.cosine.astype(np.float64)
    if settings.retrieval.channel_sentences and candidates.sentence is not None:
        vector = (vector + candidates.sentence) / 2  # with that of the best sentence of the chunk
    known = np.isfinite(vector)
    vector = np.where(known, vector, candidates.mean)
    vector_found = known & fusion.best_mask(
        np.where(known, vector, -np.inf), limits.get(VECTOR, 0), -np.inf
    )
    if TEXT not in limits:
        return _ranked(candidates, vector, vector_found, settings)
    near = fusion.standardise(vector, candidates.mean, candidates.deviation, candidates.visible)
    said, weight = fusion.proportion(text, candidates.visible), settings.retrieval.weight_vector
    fused = weight * near + (1.0 - weight) * said  # SPEC T3
    return _ranked(candidates, fused, vector_found | text_found, settings)


def _ranked(candidates: Candidates, scores: Scores, kept: Scores, settings: Settings) -> Ranked:
    rows = np.flatnonzero(kept)
    # Candidates come as they were ingested, so that equal scores fall alike in every directory.
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    ids = candidates.chunk_ids
    order = rows.tolist()
    channels: dict[str, dict[str, float]] = {}
    if (candidates.bm25 > 0).any():
        channels[TEXT] = {
            ids[i]: float(candidates.bm25[i]) for i in order if candidates.bm25[i] > 0
        }
    if candidates.cosine is not None:
        channels[VECTOR] = {ids[i]: float(candidates.cosine[i]) for i in order}
        sentence = candidates.sentence
        told = sentence is not None and (sentence != candidates.cosine).any()
        if sentence is not None and told and settings.retrieval.channel_sentences:
            channels[SENTENCE] = {ids[i]: float(sentence[i]) for i in order}
    return Ranked([(ids[i], float(scores[i])) for i in order], channels)
