"""Time hot searches on made-up collections, each beside the floor of the same run.

python -m benchmarks.segments [--rows 5000 25000 100000]. The rows are random unit vectors with
words drawn by Zipf's law; the floor is a bare matrix product with a partition, and bm25s on the
same terms. A quarter of the documents is closed to the caller, and another tenant's collection
stands beside. Compare only figures of one run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed import percentiles, timed
from core.auth import AuthContext
from core.settings import Settings
from stores.sqlite.catalogue import Collection
from stores.sqlite.files import Changes
from stores.sqlite.permissions import OPERATOR
from stores.sqlite.rows import ChunkRow, DocumentRow
from stores.store import Store, parts

DIMENSION = 384
VOCABULARY = 60_000
LENGTH = 90
POOL = 100
WORDS = 8
PER_DOCUMENT = 5
RARE = "rare/*"
MODEL = "made-up"


def zipf_words(draw: np.random.Generator, count: int) -> list[str]:
    """Draw words whose rank follows Zipf's law."""
    ranks = np.minimum(draw.zipf(1.15, size=count), VOCABULARY)
    return [f"q{rank}z" for rank in ranks.tolist()]


def document(
    collection: Collection, number: int, texts: list[str], *, source: str, closed: bool
) -> DocumentRow:
    """Return a document with one chunk per text."""
    name = f"{collection.tenant}{number:07}"
    chunks = [
        ChunkRow(f"{name}-{i:011}", i, text, "text", "", None, LENGTH, f"{name}{i}")
        for i, text in enumerate(texts)
    ]
    return DocumentRow(
        key=name,
        document_id=name,
        file=name,
        source=source,
        title=texts[0][:40],
        format="text",
        language="en",
        is_record=False,
        version="",
        updated_at="",
        content_hash=name,
        metadata={},
        fields=[],
        chunks=chunks,
        acl=frozenset({"others"}) if closed else frozenset(),
    )


def fill(store: Store, collection: Collection, rows: int, draw: np.random.Generator) -> None:
    """Write rows with unit vectors, in batches."""
    batch: list[DocumentRow] = []
    vectors: dict[str, Any] = {}
    for number in range(rows // PER_DOCUMENT):
        words = zipf_words(draw, LENGTH * PER_DOCUMENT)
        texts = [" ".join(words[i * LENGTH : (i + 1) * LENGTH]) for i in range(PER_DOCUMENT)]
        source = "rare/x" if number % 100 == 0 else "docs/x"
        made = document(collection, number, texts, source=source, closed=number % 4 == 3)
        unit = draw.normal(size=(PER_DOCUMENT, DIMENSION)).astype(np.float32)
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        vectors |= {c.content_hash: v for c, v in zip(made.chunks, unit, strict=True)}
        batch.append(made)
        if len(batch) == 200:
            store.intake.write_vectors(collection.id, MODEL, vectors, {}, [])
            store.intake.write_batch(collection, Changes(batch), OPERATOR)
            batch, vectors = [], {}
    store.intake.write_vectors(collection.id, MODEL, vectors, {}, [])
    store.intake.write_batch(collection, Changes(batch), OPERATOR)


def floor(store: Store, collection: Collection) -> Callable[[list[str], Any], None]:
    """Return the bare search: matrix product, partition, bm25s."""
    import bm25s

    from stores.segments.postings import weighted_terms
    from stores.segments.rows import Rows, read_rows, snapshot

    with snapshot(parts(store).database) as connection:
        rows = Rows(collection.id, MODEL, words=False)
        for _ in rows.extend(connection):
            pass
        batches = read_rows(connection, collection.id, MODEL, 0, words=True)
        texts = [weighted_terms(*row[5:9]) for batch in batches for row in batch]
    matrix = rows.with_postings(None).vectors
    bare = bm25s.BM25(k1=1.5, b=0.75)
    bare.index(texts, show_progress=False)

    def search(words: list[str], vector: Any) -> None:
        scores = matrix @ vector
        np.argpartition(scores, len(scores) - POOL)
        bare.get_scores(words)

    return search


def measure(rows: int, queries: int) -> dict[str, Any]:
    """Fill a store and time searches under several rights."""
    draw = np.random.default_rng(rows)
    with tempfile.TemporaryDirectory() as folder:
        with Store(Settings(data=Path(folder)), MODEL, create=True) as store:
            mine = store.intake.open_collection("acme", "main", None)
            fill(store, mine, rows, draw)
            fill(store, store.intake.open_collection("rival", "main", None), rows // 10, draw)
            report: dict[str, Any] = {"rows": rows}
            report["build_s"] = round(timed(lambda: store.search.refresh(mine)) / 1000, 2)
            report |= times(store, mine, draw, queries)
        with Store(Settings(data=Path(folder)), MODEL) as store:
            words, vector = question(draw)
            auth = AuthContext(tenant="acme")
            report["first_ms"] = round(timed(lambda: ask(store, mine, auth, words, vector)), 1)
    return report


def question(draw: np.random.Generator) -> tuple[list[str], Any]:
    """Return words and a unit vector."""
    vector = draw.normal(size=DIMENSION).astype(np.float32)
    return list(dict.fromkeys(zipf_words(draw, WORDS))), vector / np.linalg.norm(vector)


def ask(
    store: Store,
    collection: Collection,
    auth: AuthContext,
    words: list[str],
    vector: Any,
    sources: tuple[str, ...] = (),
) -> None:
    """Run one hot search."""
    terms = [{word} for word in words]
    store.search.candidates(
        auth, collection.id, terms=terms, vector=vector, pool=POOL, sources=sources
    )


def times(
    store: Store, collection: Collection, draw: np.random.Generator, queries: int
) -> dict[str, Any]:
    """Time the floor and each kind of rights in turn, question by question."""
    everyone = AuthContext(tenant="acme", roles=frozenset({"others"}))
    some = AuthContext(tenant="acme")
    kinds: dict[str, tuple[AuthContext, tuple[str, ...]]] = {
        "all": (everyone, ()),
        "tenant_and_acl": (some, ()),
        "one_percent": (everyone, (RARE,)),
    }
    bare = floor(store, collection)
    first = {
        name: round(timed(lambda k=kind: ask(store, collection, k[0], *question(draw), k[1])), 1)
        for name, kind in kinds.items()
    }
    spent: dict[str, list[float]] = {name: [] for name in ("floor", *kinds)}
    for _ in range(queries):
        words, vector = question(draw)
        spent["floor"].append(timed(lambda w=words, v=vector: bare(w, v)))
        for name, (auth, sources) in kinds.items():
            began = time.perf_counter()
            ask(store, collection, auth, words, vector, sources)
            spent[name].append((time.perf_counter() - began) * 1000)
    report: dict[str, Any] = {name: percentiles(found) for name, found in spent.items()}
    for name in kinds:
        for point in ("p50_ms", "p95_ms"):
            ratio = report[name][point] / max(0.05, report["floor"][point])
            report[name][f"{point}_to_floor"] = round(ratio, 2)
    return report | {"first_with_mask_ms": first}


def main() -> None:
    """Measure every size and print one JSON object per line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000, 25_000, 100_000])
    parser.add_argument("--queries", type=int, default=100)
    given = parser.parse_args()
    for rows in given.rows:
        print(json.dumps(measure(rows, given.queries)), flush=True)


if __name__ == "__main__":
    main()
