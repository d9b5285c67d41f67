"""Measure the answers of one pipeline on one data set, alone or against another, as one object."""

from __future__ import annotations

from typing import Any

from core.settings import Settings
from evals.answer_metrics import (
    compared,
    degraded,
    figures,
    grouped,
    question_rows,
    spent,
    stop_reasons,
)
from evals.answering import AnswersRun, ask_all, checked_answering
from evals.corpus import Progress, build_corpus
from evals.dataset import Dataset
from evals.retrieval import checked_pair, corpus_warnings
from evals.summary import LATENCY, difference_json, latency


def evaluate_answers(
    dataset: Dataset,
    pipeline: str,
    settings: Settings,
    progress: Progress,
    *,
    against: str | None = None,
) -> dict[str, Any]:
    """Return the figures of a pipeline's answers, as `carrel eval answers --json` prints them."""
    checked_pair(pipeline, against, checked_answering)
    corpus = build_corpus(dataset, settings, progress)
    mine = ask_all(dataset, corpus, checked_answering(pipeline), progress)
    result: dict[str, Any] = {
        "dataset": dataset.name,
        "confidence": settings.eval_confidence,
        **answers_json(mine, settings),
    }
    warnings = [*corpus_warnings(dataset, corpus), *mine.warnings]
    if against is not None:
        theirs = ask_all(dataset, corpus, checked_answering(against), progress)
        result["against"] = {
            **answers_json(theirs, settings),
            "differences": difference_json(compared(mine.asked, theirs.asked, settings)),
        }
        warnings += [warning for warning in theirs.warnings if warning not in warnings]
    return {**result, "notes": mine.notes, "warnings": warnings}


def answers_json(run: AnswersRun, settings: Settings) -> dict[str, Any]:
    """Return the figures of one pipeline, whole, by group, and of each question."""
    return {
        "pipeline": run.pipeline,
        **figures(run.asked, settings),
        LATENCY: latency(run.asked),
        "spent": spent(run.asked),
        "degraded": degraded(run.asked),
        "stop_reasons": stop_reasons(run.asked),
        **grouped(run.asked, settings),
        "questions": question_rows(run.asked),
    }
