"""Measure one pipeline on one data set, alone or against another, as one JSON object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.errors import CallerError
from core.settings import Settings
from evals.corpus import Corpus, Progress, build_corpus
from evals.dataset import Dataset, listed
from evals.runner import run_queries
from evals.searchers import checked_pipeline
from evals.statistics import CONFIDENCE
from evals.summary import LATENCY, compared, difference_json, figures, grouped, latency, measured


def checked_pair(
    pipeline: str, against: str | None, checked: Callable[[str], str] = checked_pipeline
) -> None:
    """Raise CallerError unless the pipelines pass `checked` and differ."""
    for name in (pipeline, *([against] if against is not None else [])):
        checked(name)
    if pipeline == against:
        raise CallerError(
            "a pipeline is compared with another one", value=against, hint="name another --against"
        )


def evaluate(
    dataset: Dataset,
    pipeline: str,
    settings: Settings,
    progress: Progress,
    *,
    against: str | None = None,
) -> dict[str, Any]:
    """Return the figures of a pipeline, as `carrel eval retrieval --json` prints them."""
    checked_pair(pipeline, against)
    corpus = build_corpus(dataset, settings, progress)
    run = run_queries(dataset, corpus, pipeline, progress)
    mine = measured(run)
    result: dict[str, Any] = {
        "dataset": dataset.name,
        "pipeline": pipeline,
        "confidence": CONFIDENCE,
        **figures(mine, mine.intervals(settings)),
        LATENCY: latency(mine.runs),
        **grouped(mine, settings),
    }
    warnings = [*corpus_warnings(dataset, corpus), *run.warnings]
    if against is not None:
        other = run_queries(dataset, corpus, against, progress)
        theirs = measured(other)
        result["against"] = {
            "pipeline": against,
            **figures(theirs, theirs.intervals(settings)),
            LATENCY: latency(theirs.runs),
            "differences": difference_json(compared(mine, theirs, settings)),
        }
        warnings += [warning for warning in other.warnings if warning not in warnings]
    return {**result, "notes": run.notes, "warnings": warnings}


def corpus_warnings(dataset: Dataset, corpus: Corpus) -> list[str]:
    """Return what is to be known of the documents: unknown, or left out by ingest."""
    warnings = list(dataset.warnings)
    if corpus.left_out:
        said = "documents that ingest left out count as not found"
        why = f"; the first reason: {corpus.reasons[0]}" if corpus.reasons else ""
        warnings.append(f"{said}: {listed(corpus.left_out)}{why}")
    return warnings
