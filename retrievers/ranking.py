"""Rank the candidates of one search: fuse the channels and keep what each may propose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.settings import Settings
from retrievers import fusion
from retrievers.channels import SENTENCE, TEXT, VECTOR
from retrievers.fusion import Scores
from retrievers.weights import Weights
from stores.segments.types import Candidates


@dataclass(frozen=True)
class Ranked:
    """Hold the ranking: chunk ids best first with their score, and each channel's raw scores."""

    ranking: list[tuple[str, float]]
    channels: dict[str, dict[str, float]]


def rank_candidates(
    candidates: Candidates,
    weights: Weights,
    settings: Settings,
    limits: Mapping[str, int],
    *,
    cutoff: float,
) -> Ranked:
    """Fuse the channels over the candidates, best first, ties by chunk id.

    Of each channel the first `limits` hits are kept, of BM25 only those that reach `cutoff` of its
    best. A channel alone keeps its own scores.
    """
    import numpy as np

    if not candidates.chunk_ids:
        return Ranked([], {})
    text = candidates.bm25.astype(np.float64)
    least = cutoff * candidates.best_bm25
    text_found = fusion.best_mask(text, limits.get(TEXT, 0), max(0.0, np.nextafter(least, 0)))
    if candidates.cosine is None:
        return _ranked(candidates, text, text_found, settings)
    vector = vector_scores(candidates, sentences=settings.channel_sentences)
    known = np.isfinite(vector)
    vector = np.where(known, vector, candidates.mean)
    vector_found = known & fusion.best_mask(
        np.where(known, vector, -np.inf), limits.get(VECTOR, 0), -np.inf
    )
    if TEXT not in limits:
        return _ranked(candidates, vector, vector_found, settings)
    fused = _fuse(candidates, vector, vector_found, text, text_found, weights, settings)
    return _ranked(candidates, fused, vector_found | text_found, settings)


def vector_scores(candidates: Candidates, *, sentences: bool) -> Scores:
    """Return the cosine of each candidate, averaged with that of its best sentence if known."""
    import numpy as np

    assert candidates.cosine is not None  # the callers have looked
    cosine = candidates.cosine.astype(np.float64)
    if not sentences or candidates.sentence is None:
        return cosine
    return np.asarray((cosine + candidates.sentence) / 2)


def _fuse(
    candidates: Candidates,
    vector: Scores,
    vector_found: Scores,
    text: Scores,
    text_found: Scores,
    weights: Weights,
    settings: Settings,
) -> Scores:
    if settings.fusion == "rrf":
        first = fusion.reciprocal_ranks(vector, vector_found, constant=settings.rrf_constant)
        second = fusion.reciprocal_ranks(text, text_found, constant=settings.rrf_constant)
        # Times the constant, so that the best of both channels comes to 1 as in the other ways.
        return (settings.rrf_constant + 1) * fusion.weighted_sum(first, second, weights.vector)
    if settings.fusion == "min_max":
        first, second = fusion.min_max(vector), fusion.min_max(text)
    else:
        first = fusion.standardise(
            vector, candidates.mean, candidates.deviation, candidates.visible
        )
        second = fusion.proportion(text)
    return fusion.weighted_sum(first, second, weights.vector)


def _ranked(candidates: Candidates, scores: Scores, kept: Scores, settings: Settings) -> Ranked:
    import numpy as np

    rows = np.flatnonzero(kept)
    # Candidates come in the order of their ids, so a stable sort breaks ties by id.
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
        if sentence is not None and told and settings.channel_sentences:
            channels[SENTENCE] = {ids[i]: float(sentence[i]) for i in order}
    return Ranked([(ids[i], float(scores[i])) for i in order], channels)
