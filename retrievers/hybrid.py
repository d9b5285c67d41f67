"""Search with one channel or with both, fused, and return permitted evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from retrievers.fusion import weighted_fusion
from retrievers.keyword import keyword_search
from retrievers.types import Found, Index, Query, Ranking
from retrievers.vector import serves, vector_search

VECTOR = "vector"
TEXT = "text"
CHANNELS: dict[str, Callable[[Index, Query, int], Ranking]] = {
    VECTOR: vector_search,
    TEXT: keyword_search,
}


def hybrid_search(
    index: Index, query: Query, channels: Sequence[str], limits: dict[str, int], top_k: int
) -> Found:
    """Run the channels, fuse them by weight and check every row against the catalogue.

    A channel whose embedder does not serve the question's language has no weight beside another
    channel: measured, fusing an English embedder into Russian search halves its recall.
    """
    settings = index.settings
    weights = {VECTOR: settings.weight_vector, TEXT: settings.weight_text}
    chosen = list(channels)
    if len(chosen) > 1 and VECTOR in chosen and not serves(index, query):
        chosen.remove(VECTOR)
    rankings = {name: CHANNELS[name](index, query, limits[name]) for name in chosen}
    if len(chosen) == 1:
        fused = rankings[chosen[0]]
    else:
        fused = weighted_fusion(rankings, weights)
    fused = fused[:top_k]
    raw = {name: dict(ranking) for name, ranking in rankings.items()}
    permitted = index.store.catalogue.evidence(
        query.auth, index.collection.id, [key for key, _ in fused]
    )
    found = Found(hidden=len(fused) - len(permitted))
    for key, score in fused:
        if key in permitted:
            scores = {name: hits[key] for name, hits in raw.items() if key in hits}
            update = {"score": score, "scores": scores, "query": query.text}
            found.evidence.append(permitted[key].model_copy(update=update))
    if VECTOR in channels and VECTOR not in chosen:
        found.notes.append("keywords only: the embedder does not serve this language")
    return found
