"""Measure ranking quality on BEIR-like folders, beside the baseline, in one run.

    python -m benchmarks.retrieval DATASET_DIR... [--limit N] [--out docs/evals/retrieval.md]
        [--set name=value]... [--ablation]

For every data set: nDCG@10 of the baseline's BM25, dense and RRF over whole passages, and of
Carrel's keyword, vector and hybrid pipelines over its chunks. --ablation measures hybrid once per
switch.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import mean

from app.session import Session
from benchmarks.baselines import Baseline
from core.language.detect import detect_language
from core.settings import Settings, load_settings
from evals.corpus import build_corpus
from evals.dataset import Dataset, read_dataset, read_objects
from evals.runner import run_queries
from evals.summary import query_metrics

METRIC = "ndcg@10"
PIPELINES = ("keyword", "vector", "hybrid")
ABLATIONS = {
    "default": {},
    "without sentences": {"channel_sentences": False},
    "without factors": {"stage_factors": False},
    "without near duplicates": {"stage_near_duplicates": False},
    "with entities": {"channel_entities": True},
    "with coverage": {"stage_coverage": True},
}


def main() -> None:
    """Run and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--ablation", action="store_true")
    given = parser.parse_args()
    changes = dict(change.split("=", 1) for change in given.set)
    settings, _ = load_settings(changes)
    run = ablation if given.ablation else against_baseline
    text = run(given.folders, given.limit, settings)
    print(text)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")


def against_baseline(folders: Iterable[Path], limit: int | None, settings: Settings) -> str:
    """Return the table of Carrel beside the baseline."""
    lines = [
        "| data set | language | n | BM25 | dense | RRF | keyword | vector | hybrid |"
        " hybrid ÷ RRF | hybrid − best channel |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    ratios = []
    for folder in folders:
        dataset = read_dataset(folder, limit=limit, allow_missing=True)
        started = time.monotonic()
        language = main_language(dataset)
        base = baseline_figures(folder, dataset, language, settings)
        own = {name: figure(dataset, name, settings) for name in PIPELINES}
        best = max(base["bm25"], base["dense"], own["keyword"], own["vector"])
        ratio = own["hybrid"] / base["rrf"] if base["rrf"] else float("nan")
        if language == "en":
            ratios.append(ratio)
        cells = [*base.values(), *own.values(), ratio, own["hybrid"] - best]
        shown = " | ".join(f"{cell:.3f}" for cell in cells[:-1]) + f" | {cells[-1]:+.3f}"
        lines.append(f"| {dataset.name} | {language} | {len(dataset.queries)} | {shown} |")
        note(f"{lines[-1]}  ({time.monotonic() - started:.0f} s)")
    if ratios:
        lines.append(f"\nMean ratio to RRF over {len(ratios)} English sets: {mean(ratios):.4f}.")
    return "\n".join(lines)


def ablation(folders: Iterable[Path], limit: int | None, settings: Settings) -> str:
    """Return nDCG@10 of hybrid per data set with one switch changed at a time."""
    sets = [read_dataset(folder, limit=limit, allow_missing=True) for folder in folders]
    lines = [
        "| change | "
        + " | ".join(dataset.name for dataset in sets)
        + " | mean | against default |",
        "|---|" + "--:|" * (len(sets) + 2),
    ]
    default = 0.0
    for name, change in ABLATIONS.items():
        changed = settings.model_copy(update=change)
        figures = [figure(dataset, "hybrid", changed) for dataset in sets]
        default = default or mean(figures)
        shown = " | ".join(f"{value:.3f}" for value in figures)
        lines.append(f"| {name} | {shown} | {mean(figures):.4f} | {mean(figures) - default:+.4f} |")
        note(lines[-1])
    return "\n".join(lines)


def figure(dataset: Dataset, pipeline: str, settings: Settings) -> float:
    """Return the mean metric of one pipeline."""
    corpus = build_corpus(dataset, settings, lambda stage, done, total: None)
    run = run_queries(dataset, corpus, pipeline, lambda stage, done, total: None)
    rankings = [[name for name, _ in item.ranking] for item in run.runs]
    rows = query_metrics([query.grades for query in dataset.queries], rankings)
    return mean(row[METRIC] for row in rows)


def baseline_figures(
    folder: Path, dataset: Dataset, language: str, settings: Settings
) -> dict[str, float]:
    """Return the mean metric of each baseline."""
    documents = [
        (str(item["_id"]), f"{item.get('title') or ''} {item.get('text') or ''}".strip())
        for _, item in read_objects(dataset.corpus, "")
    ]
    corpus = build_corpus(dataset, settings, lambda stage, done, total: None)
    with Session(corpus.settings) as session:
        assert session.embedder is not None
        baseline = Baseline(documents, language, session.embedder, settings.cache.expanduser())
        ranked = [baseline.rank(query.text) for query in dataset.queries]
    grades = [query.grades for query in dataset.queries]
    return {
        name: mean(row[METRIC] for row in query_metrics(grades, [r[name] for r in ranked]))
        for name in ("bm25", "dense", "rrf")
    }


def main_language(dataset: Dataset) -> str:
    """Return the language most queries are written in."""
    found = [query.language or detect_language(query.text) for query in dataset.queries]
    return max(sorted(set(found)), key=found.count)


def note(text: str) -> None:
    """Tell how far the work is."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
