"""Run the stages over ranked evidence, each switched by its setting, and trace each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from core.trace import StageStep
from core.types import Evidence
from retrievers.coverage import coverage, token_budget
from retrievers.factors import boost_entities, factors
from retrievers.near_duplicates import near_duplicates
from retrievers.neighbours import announced, neighbours
from retrievers.rerank import rerank
from retrievers.types import Index, Searched, Stage

# Re-ranking stages keep the evidence, choosing stages cut it to what an answer should read.
RANKING: tuple[tuple[str, Stage], ...] = (
    ("retrieval.channel_entities", boost_entities),
    ("selection.stage_rerank", rerank),
    ("selection.stage_factors", factors),
    ("selection.stage_near_duplicates", near_duplicates),
)
CHOOSING: tuple[tuple[str, Stage], ...] = (
    ("selection.stage_coverage", coverage),
    ("selection.stage_neighbours", neighbours),
    ("selection.stage_announced", announced),
    ("selection.stage_token_budget", token_budget),
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
        name = switch.rpartition(".")[2].removeprefix("stage_").removeprefix("channel_")
        with traced(trace, name, len(evidence)) as step:
            evidence, note = stage(searched, evidence)
            step |= {"after": len(evidence), "note": note}
    return evidence


@contextmanager
def traced(trace: list[StageStep], name: str, before: int = 0) -> Iterator[dict[str, Any]]:
    """Time one stage and add its step to the trace, with what it says of itself."""
    told: dict[str, Any] = {"before": before, "after": before}
    started = time.perf_counter()
    yield told
    spent = round(1000 * (time.perf_counter() - started), 3)
    trace.append(StageStep(name=name, ms=spent, **told))


def switched(index: Index, switch: str) -> bool:
    """Tell whether a stage is on; without a model that re-ranks there is nothing to switch."""
    if switch == "selection.stage_rerank" and index.reranker is None:
        return False
    return bool(index.settings.value(switch))
