"""Compare the chunkers on judged queries: ingest the same documents in each way, then search.

    python -m benchmarks.chunkers DATASET_DIR... [--limit N] [--only NAMES] [--out REPORT.md]

Each DATASET_DIR holds corpus.jsonl, queries.jsonl and qrels.tsv. Seconds are those of this machine,
measured once, and only to be compared with each other.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.auth import AuthContext
from core.cache import local_cache
from core.language.detect import detect_language
from core.settings import Settings, load_settings
from evals.dataset import Dataset, read_dataset
from evals.summary import Difference, differences, query_metrics
from ingest.pipeline import Pipeline
from models.embeddings import CachedEmbedder, Embedder
from models.loading import open_embedder
from retrievers.pipelines import run_pipeline
from retrievers.types import Index, Query
from stores.store import Store
from stores.store import parts as store_parts

VARIANTS: dict[str, dict[str, Any]] = {
    "fixed": {"chunker": "fixed"},
    "sentence": {"chunker": "sentence"},
    "semantic": {"chunker": "semantic"},
    "structural": {"chunker": "structural"},
    "sentence, merged": {"chunker": "sentence", "merge_short": True},
    "sentence, merged to 500": {"chunker": "sentence", "merge_short": True, "merge_max": 500},
}
BASELINE = "sentence"
PIPELINES = ("hybrid", "vector", "keyword")
SHOWN = ("ndcg@10", "recall@5")
DEPTH = 100  # chunks of a ranking: enough for 10 documents of many chunks each
AUTH = AuthContext(tenant="benchmark")
REMEMBERED = 20_000
SURE = 0.05

Rows = dict[str, list[dict[str, float]]]  # by pipeline, one row of metrics a query


@dataclass(frozen=True)
class Result:
    """Hold what one chunker gave on one data set."""

    chunks: int
    mean_size: float
    seconds: float
    rows: Rows

    def mean(self, pipeline: str, metric: str) -> float:
        """Return the mean of a metric over the queries."""
        values = [row[metric] for row in self.rows[pipeline]]
        return sum(values) / len(values)


def measure(dataset: Dataset, embedder: Embedder, values: dict[str, Any], folder: Path) -> Result:
    """Ingest a data set into `folder` with these settings and run its queries."""
    settings, _ = load_settings({"data": folder, **values})
    store = Store(settings, embedder.model_id, create=True)
    try:
        collection = store.intake.open_collection(AUTH.tenant, "corpus", None)
        # The searches share remembered questions; ingest takes the model itself.
        summary = Pipeline(store, open_embedder(settings), settings, collection).run(
            [dataset.corpus]
        )
        size = (
            store_parts(store)
            .database.read()
            .execute("SELECT avg(length(text)) FROM chunks")
            .fetchone()[0]
        )
        index = Index(store, collection, embedder, settings)
        rows = {pipeline: evaluate(index, dataset, pipeline) for pipeline in PIPELINES}
    finally:
        store.close()
    return Result(summary.chunks, float(size), summary.seconds, rows)


def evaluate(index: Index, dataset: Dataset, pipeline: str) -> list[dict[str, float]]:
    """Return the metrics of each query; a document stands at the place of its best chunk."""
    rankings = []
    for query in dataset.queries:
        asked = Query(query.text, AUTH, language=detect_language(query.text))
        found = run_pipeline(index, asked, pipeline, DEPTH, choose=False)
        rankings.append(list(dict.fromkeys(item.document_id for item in found.evidence)))
    return query_metrics([query.grades for query in dataset.queries], rankings)


def compare(dataset: Dataset, names: Sequence[str], embedder: Embedder) -> dict[str, Result]:
    """Measure the variants on one data set, each in a directory of its own."""
    results = {}
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            results[name] = measure(dataset, embedder, VARIANTS[name], Path(scratch))
        print(f"{dataset.name}: {name}: {results[name].mean('hybrid', 'ndcg@10'):.3f}", flush=True)
    return results


def section(dataset: Dataset, results: dict[str, Result], settings: Settings) -> list[str]:
    """Return the Markdown of one data set: the table, then what differs from the baseline."""
    heads = [f"{pipeline} {metric}" for pipeline in PIPELINES for metric in SHOWN]
    lines = [
        f"## {dataset.name}",
        "",
        f"{len(dataset.document_ids)} documents, {len(dataset.queries)} queries.",
        "",
        "| chunker | chunks | mean size | " + " | ".join(heads) + " | ingest s |",
        "|---|" + "---:|" * (len(heads) + 3),
    ]
    best = {
        (p, m): max(round(result.mean(p, m), 3) for result in results.values())
        for p in PIPELINES
        for m in SHOWN
    }
    for name, result in results.items():
        cells = [f"{result.chunks}", f"{result.mean_size:.0f}"]
        for place, top in best.items():
            value = f"{result.mean(*place):.3f}"
            cells.append(f"**{value}**" if float(value) == top else value)
        lines.append(f"| {name} | " + " | ".join([*cells, f"{result.seconds:.1f}"]) + " |")
    return [*lines, "", *verdicts(results, settings), ""]


def verdicts(results: dict[str, Result], settings: Settings) -> list[str]:
    """Say of each variant how its nDCG@10 differs from the baseline's, and how surely."""
    if BASELINE not in results:
        return []
    lines = [f"nDCG@10 against `{BASELINE}`, paired by query:", ""]
    base = results[BASELINE].rows
    for name, result in results.items():
        if name == BASELINE:
            continue
        found = differences(
            [[row["ndcg@10"] for row in result.rows[pipeline]] for pipeline in PIPELINES],
            [[row["ndcg@10"] for row in base[pipeline]] for pipeline in PIPELINES],
            settings,
        )
        told = [verdict(p, gap) for p, gap in zip(PIPELINES, found, strict=True)]
        lines.append(f"- {name}: {'; '.join(told)}")
    return lines


def verdict(pipeline: str, gap: Difference) -> str:
    """Say one difference in a few words."""
    if gap.p >= SURE:
        return f"{pipeline} {gap.mean:+.3f} (no sure difference, p = {gap.p:.2f})"
    sure = "p < 0.001" if gap.p < 0.001 else f"p = {gap.p:.3f}"
    return f"{pipeline} {gap.mean:+.3f} ({'better' if gap.mean > 0 else 'worse'}, {sure})"


def main() -> None:
    """Measure all data sets and print or write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", type=Path, nargs="+")
    parser.add_argument("--limit", type=int, help="queries per data set")
    parser.add_argument("--only", help="variants to compare, with ; between")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    names = [name.strip() for name in given.only.split(";")] if given.only else list(VARIANTS)
    settings, _ = load_settings()
    embedder = CachedEmbedder(open_embedder(settings), local_cache("embeddings", REMEMBERED))
    parts: list[str] = []
    for folder in given.datasets:
        dataset = read_dataset(folder, limit=given.limit)
        parts += section(dataset, compare(dataset, names, embedder), settings)
    report = "\n".join(parts)
    if given.out:
        given.out.write_text(report, encoding="utf-8")
    else:
        print(report)


if __name__ == "__main__":
    main()
