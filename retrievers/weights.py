"""The weight of the vector channel for one query, with the reasons."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.language.detect import detect_language
from core.settings import Settings
from models.embeddings import Embedder
from retrievers.kinds import query_kind
from retrievers.trust import Trust, judge_vectors
from retrievers.types import Query
from stores.segments.types import Candidates

FULL = 0.995  # a share that rounds to all of the weight is not worth a note


@dataclass(frozen=True)
class Weights:
    """Hold the vector channel's weight, 0..1; BM25 has the rest. `notes` say what changed it."""

    vector: float
    trust: Trust = Trust()
    notes: list[str] = field(default_factory=list)


def decide_weights(
    candidates: Candidates, query: Query, settings: Settings, embedder: Embedder | None = None
) -> Weights:
    """Decide the weights from the settings, the kind of query, and what the search shows.

    The vector channel loses weight when its best distance is weak (SPEC T5) or when its scores
    show that it does not know these texts; a channel that found nothing gives its weight away.
    """
    if candidates.cosine is None:
        return Weights(0.0)
    if not (candidates.bm25 > 0).any():
        return Weights(1.0)
    vector, notes = _base_weight(query, settings), []
    distance = best_distance(candidates, query, embedder)
    if distance is not None and distance > settings.weak_distance:
        vector = min(vector, 1.0 - settings.weak_weight_text)
        notes.append(f"vectors are weak (best distance {distance:.2f})")
    trust = judge_vectors(candidates, settings) if settings.trust_vectors else Trust()
    if trust.share < FULL:
        notes.append(
            f"vectors count {trust.share:.2f} of their weight"
            f" (peak {trust.peak:.2f}, agreement {trust.agreement:.2f})"
        )
    return Weights(vector * trust.share, trust, notes)


def best_distance(candidates: Candidates, query: Query, embedder: Embedder | None) -> float | None:
    """Return 1 − the similarity of the best hit, 0..1; None without vectors."""
    import numpy as np

    cosines = candidates.cosine
    if embedder is None or cosines is None or not np.isfinite(cosines).any():
        return None
    return 1.0 - embedder.similarity(float(np.nanmax(cosines)), query.language or "")


def _base_weight(query: Query, settings: Settings) -> float:
    if settings.weights_by_kind:
        kind = query_kind(query.text, query.language or detect_language(query.text))
        return float(getattr(settings, f"weight_vector_{kind}"))
    return settings.weight_vector / (settings.weight_vector + settings.weight_text)
