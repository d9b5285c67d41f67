"""Run the stages over ranked evidence, each switched by its setting, and trace each."""

from __future__ import annotations

import time

from core.trace import StageStep
from core.types import Evidence
from retrievers.adaptive import adaptive
from retrievers.coverage import coverage
from retrievers.entities import boost_entities
from retrievers.factors import factors
from retrievers.near_duplicates import near_duplicates
from retrievers.neighbours import neighbours
from retrievers.rerank import rerank
from retrievers.token_budget import token_budget
from retrievers.types import Index, Searched, Stage

# Re-ranking stages keep the evidence, choosing stages cut it to what an answer should read.
RANKING: tuple[tuple[str, Stage], ...] = (
    ("channel_entities", boost_entities),
    ("stage_rerank", rerank),
    ("stage_factors", factors),
    ("stage_near_duplicates", near_duplicates),
)
CHOOSING: tuple[tuple[str, Stage], ...] = (
    ("stage_coverage", coverage),
    ("stage_adaptive", adaptive),
    ("stage_neighbours", neighbours),
    ("stage_token_budget", token_budget),
)


def run_stages(
    searched: Searched,
    evidence: list[Evidence],
    stages: tuple[tuple[str, Stage], ...],
    trace: list[StageStep],
) -> list[Evidence]:
    """Return what the switched-on stages make of the evidence; each leaves a step in the trace."""
    for switch, stage in stages:
        if not evidence or not switched(searched.index, switch):
            continue
        started, before = time.perf_counter(), len(evidence)
        evidence, note = stage(searched, evidence)
        spent = 1000 * (time.perf_counter() - started)
        name = switch.removeprefix("stage_").removeprefix("channel_")
        trace.append(
            StageStep(name=name, before=before, after=len(evidence), ms=round(spent, 3), note=note)
        )
    return evidence


def switched(index: Index, switch: str) -> bool:
    """Tell whether a stage is on; without a model that re-ranks there is nothing to switch."""
    if switch == "stage_rerank" and index.reranker is None:
        return False
    return bool(getattr(index.settings, switch))


def hydrated(index: Index, top_k: int) -> int:
    """Return how many hits the ranking stages need to read for `top_k` results."""
    pool = index.settings.rerank_pool if switched(index, "stage_rerank") else 0
    return max(top_k + index.settings.spare, pool)
