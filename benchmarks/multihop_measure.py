"""Measure one section of the report on one data set, as one JSON object."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.multihop_overhead import overhead
from core.errors import OperatorError
from core.settings import Settings
from evals.answers import ANSWERING, AnswersRun, answers_json, ask_all
from evals.answers import compared as compared_answers
from evals.compare import corpus_warnings
from evals.corpus import Progress, build_corpus
from evals.dataset import Dataset, read_dataset, read_queries
from evals.runner import AGENTIC, run_queries
from evals.summary import METRICS, Measured, compared, difference_json, latency, measured
from reasoning.rules.reasoner import RulesReasoner

MULTI = ("musique_small", "hotpotqa_small", "multihop_rag", "lihua_world")
SINGLE = ("squad2", "scifact", "cranfield", "xquad_en", "xquad_ru", "xquad_zh")
DECOMPOSED = ("musique_small", "fanoutqa")
DECOMPOSITIONS = "benchmarks.decompositions"
OTHERS = ("hybrid", "linked", "classic")
SINGLE_OTHERS = ("auto", "hybrid")
# full_support is the share of queries whose relevant documents are all within the first ten.
SHOWN = tuple(
    name for name in ("recall@5", "recall@10", "full_support@10", "ndcg@10") if name in METRICS
)
GAINS = tuple(name for name in SHOWN if not name.startswith("ndcg"))
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)

Found = dict[str, Any]


@dataclass(frozen=True)
class Given:
    """Hold what a measurement is made with; `limit` is the most questions of a set."""

    folder: Path
    settings: Settings
    progress: Progress
    limit: int | None = None

    def dataset(self, *, judged_only: bool = True) -> Dataset:
        """Read the data set; documents that the corpus lacks count as not found."""
        return read_dataset(
            self.folder, limit=self.limit, allow_missing=True, judged_only=judged_only
        )


def retrieval(given: Given) -> Found:
    """Rank with agentic and with the pipelines it is compared with."""
    return _ranked(given, OTHERS)


def parity(given: Given) -> Found:
    """Rank questions that need one search, with agentic, auto and hybrid."""
    return _ranked(given, SINGLE_OTHERS)


def _ranked(given: Given, others: Sequence[str]) -> Found:
    dataset = given.dataset()
    corpus = build_corpus(dataset, given.settings, given.progress)
    runs: dict[str, Measured] = {}
    warnings = corpus_warnings(dataset, corpus)
    for name in (AGENTIC, *others):
        run = run_queries(dataset, corpus, name, given.progress)
        runs[name] = measured(run)
        warnings += [warning for warning in run.warnings if warning not in warnings]
    return {
        "n": len(dataset.queries),
        "metrics": {
            name: {metric: round(run.mean(metric), 6) for metric in SHOWN}
            for name, run in runs.items()
        },
        "latency_ms": {name: latency(run.runs) for name, run in runs.items()},
        "differences": {
            name: _shown(difference_json(compared(runs[AGENTIC], runs[name], given.settings)))
            for name in others
        },
        "columns": {
            name: {metric: run.column(metric) for metric in SHOWN} for name, run in runs.items()
        },
        "warnings": warnings,
    }


def _shown(differences: Mapping[str, Any]) -> Found:
    return {metric: differences[metric] for metric in SHOWN}


def answers(given: Given) -> Found:
    """Ask all questions with every pipeline that answers."""
    dataset = given.dataset(judged_only=False)
    corpus = build_corpus(dataset, given.settings, given.progress)
    runs: dict[str, AnswersRun] = {
        name: ask_all(dataset, corpus, name, given.progress)
        for name in ANSWERING
        if name != "single"  # which asks a model
    }
    return {
        "n": len(dataset.queries),
        "pipelines": {name: answers_json(run, given.settings) for name, run in runs.items()},
        "differences": {
            f"{first} − {second}": difference_json(
                compared_answers(runs[first].asked, runs[second].asked, given.settings)
            )
            for first, second in (("agentic", "classic"), ("auto", "classic"), ("auto", "agentic"))
        },
        "warnings": corpus_warnings(dataset, corpus),
    }


def kinds(given: Given) -> Found:
    """Return the share of questions that the rules call multi, by type too, and that are planned.

    A question is planned by `auto` when it is multi, or plain with less confidence than the
    threshold (`plain_confidence`).
    """
    rules = RulesReasoner(given.settings, lambda terms: dict.fromkeys(terms, 1.0), None)
    queries = read_queries(given.folder)[: given.limit]
    found = [rules.understand(query.text, []) for query in queries]
    return {
        "n": len(found),
        "multi": _share(one.kind == "multi" for one in found),
        "by_type": {
            name: _share(
                one.kind == "multi"
                for query, one in zip(queries, found, strict=True)
                if query.type == name
            )
            for name in dict.fromkeys(query.type for query in queries)
        },
        "planned": {
            str(least): _share(one.kind == "multi" or one.confidence < least for one in found)
            for least in THRESHOLDS
        },
    }


def _share(chosen: Iterable[bool]) -> float:
    every = list(chosen)
    return round(sum(every) / max(1, len(every)), 4)


def decompositions(given: Given) -> Found:
    """Return what the benchmark of decompositions prints; nothing where there is no such module."""
    if importlib.util.find_spec(DECOMPOSITIONS) is None:
        return {}
    limits = [] if given.limit is None else ["--limit", str(given.limit)]
    done = subprocess.run(
        [sys.executable, "-m", DECOMPOSITIONS, str(given.folder), *limits],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or not done.stdout.strip():
        raise OperatorError(
            f"{DECOMPOSITIONS} must print a table",
            value=done.stderr.strip().splitlines()[-1:],
            hint="run it alone",
        )
    return {"text": done.stdout.strip()}


def overheads(given: Given) -> Found:
    """Return what planning and execution cost per operation."""
    dataset = given.dataset(judged_only=False)
    return overhead(dataset, given.settings, "agentic", given.progress)


SECTIONS: dict[str, tuple[Callable[[Given], Found], tuple[str, ...]]] = {
    "retrieval": (retrieval, MULTI),
    "parity": (parity, SINGLE),
    "kinds": (kinds, (*MULTI, "fanoutqa", *SINGLE)),
    "decompositions": (decompositions, DECOMPOSED),
    "answers": (answers, MULTI),
    "overhead": (overheads, MULTI),
}
