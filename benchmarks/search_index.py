"""Time searches by vector with each search index, and compare what they find with exact search.

python -m benchmarks.search_index DATASET [--rows 5000 25000] [--index memmap chroma milvus]
[--queries 100] [--url URL of a server of the last index, to measure that as well]. The first rows
are the passages of a data set like BEIR, each with its own vector of the embedder; the others are
copies of these vectors with noise, which no question is judged by. A caller who sees every chunk
asks, and one who sees 1 %: those that answer a question come first. Compare figures of one run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.baselines import cached_vectors
from benchmarks.segments import MODEL, document
from benchmarks.speed import percentiles
from core.auth import AuthContext
from core.settings import Settings, load_settings
from evals.dataset import JudgedQuery, read_dataset, read_objects
from evals.summary import query_metrics
from models.loading import open_embedder
from stores.index.place import ADDRESS
from stores.sqlite.files import Changes
from stores.sqlite.permissions import OPERATOR
from stores.store import Store

NOISE = 0.02  # of each of 384 numbers: a copy has a cosine of some 0.93 with its original
POOL = 10
BATCH = 1000
ALL, FEW = "all", "1 %"
CALLERS = {
    ALL: AuthContext(tenant="acme", roles=frozenset({"others"})),
    FEW: AuthContext(tenant="acme"),
}


@dataclass(frozen=True)
class Passages:
    """Hold a data set with vectors; `names` are the ids of the first of its rows."""

    names: list[str]
    vectors: np.ndarray
    queries: list[JudgedQuery]
    asked: np.ndarray

    def open_rows(self) -> np.ndarray:
        """Return the rows that the caller with few rights sees: answers first, then any."""
        relevant = {name for one in self.queries for name in one.relevant}
        answers = [row for row, name in enumerate(self.names) if name in relevant]
        others = [row for row in range(len(self.vectors)) if row not in set(answers)]
        return np.sort([*answers, *others][: max(POOL, len(self.vectors) // 100)])


def read_passages(folder: Path, rows: int, queries: int) -> Passages:
    """Read `rows` vectors, those of the data set first."""
    dataset, settings = read_dataset(folder, limit=queries, allow_missing=True), load_settings()[0]
    objects = [one for _, one in read_objects(dataset.corpus, "")]
    texts = [f"{one.get('title') or ''} {one.get('text') or ''}".strip() for one in objects]
    embedder = open_embedder(settings)
    real = cached_vectors(texts, embedder, settings.cache.expanduser())[:rows]
    draw = np.random.default_rng(rows)
    made = real[draw.integers(len(real), size=rows - len(real))]
    made = made + draw.normal(scale=NOISE, size=made.shape)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    asked = np.array([embedder.embed_query(one.text) for one in dataset.queries])
    vectors = np.concatenate([real, made]).astype(np.float32)
    names = [str(one["_id"]) for one in objects][:rows]
    return Passages(names, vectors, dataset.queries, asked.astype(np.float32))


def fill(store: Store, passages: Passages, seen: set[int]) -> Any:
    """Write one document for each vector; return the collection."""
    mine = store.intake.open_collection("acme", "main", None)
    for start in range(0, len(passages.vectors), BATCH):
        numbers = range(start, min(start + BATCH, len(passages.vectors)))
        made = [
            document(mine, n, [f"text {n}"], source="docs/x", closed=n not in seen) for n in numbers
        ]
        hashes = {
            row.chunks[0].content_hash: passages.vectors[n]
            for n, row in zip(numbers, made, strict=True)
        }
        store.intake.write_vectors(mine.id, MODEL, hashes, {}, [])
        store.intake.write_batch(mine, Changes(made), OPERATOR)
    return mine


def ask(
    store: Store, collection_id: int, passages: Passages, auth: AuthContext, seen: np.ndarray
) -> dict[str, Any]:
    """Return times, recall@10 beside exact search and nDCG@10 of one caller."""
    spent, hits, rankings = [], 0, []
    named = {row: name for row, name in enumerate(passages.names) if row in set(seen.tolist())}
    for vector in passages.asked:
        began = time.perf_counter()
        found = store.search.candidates(auth, collection_id, terms=[], vector=vector, pool=POOL)
        spent.append(1000 * (time.perf_counter() - began))
        assert found.notes == () and found.cosine is not None
        least = np.sort(passages.vectors[seen] @ vector)[-POOL:][0]
        hits += int((found.cosine >= least - 1e-5).sum())
        order = np.argsort(-found.cosine, kind="stable")
        rows = [int(found.chunk_ids[place].split("-")[0].removeprefix("acme")) for place in order]
        rankings.append([named.get(row, f"made {row}") for row in rows])
    seen_names = set(named.values())
    return {
        **percentiles(spent),
        "recall": round(hits / min(POOL, len(seen)) / len(passages.asked), 3),
        "ndcg@10": judged(passages.queries, rankings, seen_names),
    }


def judged(
    queries: Sequence[JudgedQuery], rankings: Sequence[list[str]], seen: set[str]
) -> float | None:
    """Return the mean nDCG@10 of the questions that have an answer among what is seen."""
    grades = [{name: one.grades[name] for name in one.relevant & seen} for one in queries]
    kept = [(grade, ranking) for grade, ranking in zip(grades, rankings, strict=True) if grade]
    if not kept:
        return None
    rows = query_metrics([one for one, _ in kept], [ranking for _, ranking in kept])
    return round(mean(row["ndcg@10"] for row in rows), 3)


def measure(index: str, passages: Passages, url: str = "") -> dict[str, Any]:
    """Fill a store, bring its index up to date, and ask."""
    count, few = len(passages.vectors), passages.open_rows()
    report: dict[str, Any] = {"index": index, "url": url, "rows": count}
    with tempfile.TemporaryDirectory() as folder:
        where: dict[str, object] = {ADDRESS.get(index, "chroma.url"): url}
        where |= {"chroma.timeout_s": 60}
        settings = Settings(data=Path(folder), index=index, **where)
        with Store(settings, MODEL, create=True) as store:
            mine = fill(store, passages, set(few.tolist()))
            began = time.perf_counter()
            store.search.refresh(mine)
            report["build_s"] = round(time.perf_counter() - began, 1)
            for name, auth in CALLERS.items():
                seen = np.arange(count) if name == ALL else few
                first = passages.asked[0]
                store.search.candidates(auth, mine.id, terms=[], vector=first, pool=POOL)
                report[name] = ask(store, mine.id, passages, auth, seen)
    return report


def main() -> None:
    """Print one line of JSON for each index and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[5000, 25_000])
    parser.add_argument("--index", nargs="+", default=["memmap", "chroma", "milvus"])
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--url", help="of a server of the last index")
    given = parser.parse_args()
    places = [(index, "") for index in given.index] + [
        (given.index[-1], url) for url in [given.url] if url
    ]
    for rows in given.rows:
        passages = read_passages(given.dataset, rows, given.queries)
        for index, url in places:
            print(json.dumps(measure(index, passages, url)), flush=True)


if __name__ == "__main__":
    main()
