"""Time searches by vector with each search index, and count what they find of the exact answer.

python -m benchmarks.search_index [--rows 5000 25000] [--index memmap chroma milvus] [--queries 50]
[--url URL of a server of the last index, to measure that as well]. Vectors are made up: 384 numbers
around 200 centres; questions lie near one of them. A caller who sees every chunk asks, and one who
sees a tenth. Compare only figures of one run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.segments import DIMENSION, MODEL, document
from benchmarks.speed import percentiles
from core.auth import AuthContext
from core.settings import Settings
from stores.index.place import ADDRESS
from stores.sqlite.files import Changes
from stores.sqlite.permissions import OPERATOR
from stores.store import Store

CENTRES = 200
SPREAD = 0.06  # of each number; a centre has length 1, so that a vector is about half of each
POOL = 10
BATCH = 1000
CALLERS = {
    "all": AuthContext(tenant="acme", roles=frozenset({"others"})),
    "a tenth": AuthContext(tenant="acme"),
}


def near(draw: np.random.Generator, centres: Any, count: int) -> Any:
    """Draw unit vectors near centres."""
    made = centres[draw.integers(len(centres), size=count)]
    made = made + draw.normal(scale=SPREAD, size=made.shape)
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def measure(index: str, rows: int, queries: int, url: str = "") -> dict[str, Any]:
    """Fill a store, bring its index up to date, and ask."""
    draw = np.random.default_rng(rows)
    centres = near(draw, np.zeros((1, DIMENSION)), CENTRES)
    vectors, asked = near(draw, centres, rows), near(draw, centres, queries)
    report: dict[str, Any] = {"index": index, "url": url, "rows": rows}
    with tempfile.TemporaryDirectory() as folder:
        where: dict[str, object] = {ADDRESS.get(index, "chroma.url"): url}
        where |= {"chroma.timeout_s": 60}
        settings = Settings(data=Path(folder), index=index, **where)
        with Store(settings, MODEL, create=True) as store:
            mine = store.intake.open_collection("acme", "main", None)
            for start in range(0, rows, BATCH):
                numbers = range(start, min(start + BATCH, rows))
                made = [
                    document(mine, n, [f"text {n}"], source="docs/x", closed=n % 10 != 0)
                    for n in numbers
                ]
                hashes = {
                    row.chunks[0].content_hash: vectors[n]
                    for n, row in zip(numbers, made, strict=True)
                }
                store.intake.write_vectors(mine.id, MODEL, hashes, {}, [])
                store.intake.write_batch(mine, Changes(made), OPERATOR)
            began = time.perf_counter()
            store.search.refresh(mine)
            report["build_s"] = round(time.perf_counter() - began, 1)
            for name, auth in CALLERS.items():
                seen = np.arange(rows) if name == "all" else np.arange(0, rows, 10)
                store.search.candidates(auth, mine.id, terms=[], vector=asked[0], pool=POOL)
                spent, hits = [], 0
                for vector in asked:
                    began = time.perf_counter()
                    found = store.search.candidates(
                        auth, mine.id, terms=[], vector=vector, pool=POOL
                    )
                    spent.append(1000 * (time.perf_counter() - began))
                    assert found.notes == () and found.cosine is not None
                    least = np.sort(vectors[seen] @ vector)[-POOL]
                    hits += int((found.cosine >= least - 1e-5).sum())
                report[name] = {**percentiles(spent), "recall": round(hits / POOL / queries, 3)}
    return report


def main() -> None:
    """Print one line of JSON for each index and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[5000, 25_000])
    parser.add_argument("--index", nargs="+", default=["memmap", "chroma", "milvus"])
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--url", help="of a server of the last index")
    given = parser.parse_args()
    places = [(index, "") for index in given.index] + [
        (given.index[-1], url) for url in [given.url] if url
    ]
    for rows in given.rows:
        for index, url in places:
            print(json.dumps(measure(index, rows, given.queries, url)), flush=True)


if __name__ == "__main__":
    main()
