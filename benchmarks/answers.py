"""Measure answers and refusals on a folder in the BEIR layout, without a language model.

python -m benchmarks.answers DATASET [--foreign DATASET] [--limit 60]: asks questions of the set
over its own corpus, and questions of a foreign set, which should be refused. `answer` in a query's
metadata is the gold answer, type "unanswerable" marks questions whose passage lacks it. Unlike
`carrel eval answers` it draws its questions at random.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.settings import load_settings
from evals.answer_metrics import METRICS
from evals.answering import ask_one
from evals.corpus import build_corpus, open_corpus
from evals.dataset import JudgedQuery, read_dataset, read_queries
from graph.session import Session

UNANSWERABLE = "unanswerable"
SHOWN = {
    "answered": "answered",
    "gold_document_cited": "any_gold_cited",
    "gold_answer_contained": "answer_contained",
}


def ask_each(session: Session, queries: Sequence[JudgedQuery]) -> dict[str, Any]:
    """Ask every question and return the shares; a figure that no question can have is 0."""
    asked = [ask_one(session, query, "agentic") for query in queries]
    report: dict[str, Any] = {"n": len(asked)}
    for name, metric in SHOWN.items():
        values = [value for one in asked if (value := METRICS[metric](one)) is not None]
        report[name] = round(sum(values) / max(1, len(values)), 3)
    return report


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--foreign", type=Path, help="a set whose questions should be refused")
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--seed", type=int, default=5)
    given = parser.parse_args()
    draw = random.Random(given.seed)

    def sample(queries: list[JudgedQuery]) -> list[JudgedQuery]:
        return draw.sample(queries, min(given.limit, len(queries)))

    dataset = read_dataset(given.dataset, allow_missing=True, judged_only=False)
    own = [query for query in dataset.queries if query.relevant]
    without = [query for query in dataset.queries if query.type == UNANSWERABLE]
    settings, _ = load_settings({"reasoner": "rules"})
    corpus = build_corpus(dataset, settings, lambda stage, done, total: None)
    with open_corpus(corpus.settings) as session:
        report: dict[str, Any] = {"dataset": dataset.name, "own": ask_each(session, sample(own))}
        if without:
            # Nothing is there to be cited or contained.
            bare = [replace(query, grades={}, answers=()) for query in sample(without)]
            report["unanswerable"] = ask_each(session, bare)
        if given.foreign:
            foreign = [replace(query, answers=()) for query in sample(read_queries(given.foreign))]
            report["foreign"] = ask_each(session, foreign) | {"dataset": given.foreign.name}
    sys.stdout.write(json.dumps(report, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
