"""Merge the rankings of several channels into one."""

from __future__ import annotations

from collections.abc import Mapping

from retrievers.types import Ranking


def min_max(ranking: Ranking) -> dict[str, float]:
    """Scale scores to 0..1 within one ranking; a ranking of equal scores gives 1."""
    if not ranking:
        return {}
    scores = [score for _, score in ranking]
    low, high = min(scores), max(scores)
    if high == low:
        return {key: 1.0 for key, _ in ranking}
    return {key: (score - low) / (high - low) for key, score in ranking}


def weighted_fusion(channels: Mapping[str, Ranking], weights: Mapping[str, float]) -> Ranking:
    """Add min-max scores by weight (SPEC T3); the result is 0..1, ties broken by id.

    A channel that found nothing gives its weight to the others.
    """
    active = {name: ranking for name, ranking in channels.items() if ranking and weights[name] > 0}
    total = sum(weights[name] for name in active)
    fused: dict[str, float] = {}
    for name, ranking in active.items():
        for key, score in min_max(ranking).items():
            fused[key] = fused.get(key, 0.0) + weights[name] / total * score
    return sorted(fused.items(), key=lambda pair: (-pair[1], pair[0]))


def reciprocal_rank_fusion(channels: Mapping[str, Ranking], *, constant: int = 60) -> Ranking:
    """Add 1 / (constant + rank) over channels (Cormack et al., SIGIR 2009), ties by id."""
    fused: dict[str, float] = {}
    for ranking in channels.values():
        for rank, (key, _) in enumerate(ranking, start=1):
            fused[key] = fused.get(key, 0.0) + 1.0 / (constant + rank)
    return sorted(fused.items(), key=lambda pair: (-pair[1], pair[0]))
