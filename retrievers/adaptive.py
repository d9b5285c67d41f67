"""Let the distance of the best hit decide how many are kept (SPEC T4)."""

from __future__ import annotations

from core.settings import Settings
from core.types import Evidence
from retrievers.types import Searched


def adaptive(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Keep few hits after a sure one, more after a weak one; without vectors keep all.

    After a weak hit, those past `adaptive_k_far` must also reach a share of the best score.
    """
    if searched.distance is None:
        return evidence, "not cut: the best distance is not known"
    settings, distance = searched.index.settings, searched.distance
    if distance > settings.adaptive_far:
        kept = _cut_weak(settings, evidence)
    else:
        sure = distance < settings.adaptive_near
        kept = evidence[: settings.adaptive_k_near if sure else settings.adaptive_k]
    return kept, f"best distance {distance:.2f}: {len(kept)} kept"


def _cut_weak(settings: Settings, evidence: list[Evidence]) -> list[Evidence]:
    kept = evidence[: settings.adaptive_k_far]
    for item in evidence[settings.adaptive_k_far : settings.adaptive_k_far_most]:
        if item.score < settings.adaptive_cutoff * evidence[0].score:
            break
        kept.append(item)
    return kept
