"""Measure the warm latency of hybrid search beside its floor, in one run.

    python -m benchmarks.latency [--sizes 5000 25000 100000] [--queries 60] [--out FILE]

The floor is what no search can avoid: one ONNX embedding of the query, an exact numpy scan with the
choice of the best, and bm25s over the same words. Chunks have random unit vectors and words drawn
by Zipf's law; queries are English questions of such words. Carrel is asked as its tools ask it,
permissions and evidence included: everything; as a tenant whose collection lies beside another's
of the same size; and within 1 % of the sources.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from statistics import median

import bm25s
import numpy as np

from app.session import Session
from core.auth import AuthContext
from core.settings import Settings, load_settings
from retrievers.pipelines import run_pipeline
from retrievers.types import Index, Query
from stores.sqlite.catalogue import Collection
from stores.sqlite.files import Changes
from stores.sqlite.permissions import OPERATOR
from stores.sqlite.rows import ChunkRow, DocumentRow

WORDS_PER_CHUNK = 90
VOCABULARY = 30_000
QUERY_WORDS = 8
BATCH = 2000
SHARE = 100  # one source in so many is within the narrow filter
LETTERS = "bcdfghjklmnpqrstvwxz"
VOWELS = "aeiou"


def main() -> None:
    """Run and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", type=int, default=[5000, 25_000, 100_000])
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    lines = [
        "| chunks | what | p50 ms | p95 ms | p50 ÷ floor | p95 ÷ floor's p50 | n |",
        "|--:|---|--:|--:|--:|--:|--:|",
    ]
    for size in given.sizes:
        lines += measured(size, given.queries)
    text = "\n".join(lines)
    print(text)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")


def measured(size: int, queries: int) -> list[str]:
    """Build a collection of `size` chunks and return the lines of its measurements."""
    random = np.random.default_rng(size)
    words = vocabulary(random)
    with tempfile.TemporaryDirectory(prefix="carrel-latency-") as folder:
        settings, _ = load_settings({"data": folder, "cache": Settings().cache})
        with Session(settings, create=True, needs_embedder=True) as session:
            own, rows, texts = fill(session, "own", size, random, words)
            fill(session, "other", size, random, words)
            session.store.search.refresh(own)
            index = session.index(own)
            asked = [question(random, words) for _ in range(3 * queries + 10)]
            fresh = iter(asked)
            floor = timed(floor_search(session, rows, texts), fresh, queries)
            runs = {
                "floor": floor,
                "hybrid": timed(hybrid(index, AuthContext(tenant="own")), fresh, queries),
                "hybrid, tenant with access lists": timed(
                    hybrid(index, AuthContext(tenant="own", user="ann", roles=frozenset({"r1"}))),
                    iter([question(random, words) for _ in range(queries + 5)]),
                    queries,
                ),
                "hybrid, 1 % of the sources": timed(
                    hybrid(index, AuthContext(tenant="own"), ("s0/*",)),
                    iter([question(random, words) for _ in range(queries + 5)]),
                    queries,
                ),
            }
    base = median(floor)
    lines = []
    for name, times in runs.items():
        p50, p95 = median(times), float(np.percentile(times, 95))
        cells = f"{p50:.2f} | {p95:.2f} | {p50 / base:.2f} | {p95 / base:.2f} | {len(times)}"
        lines.append(f"| {size} | {name} | {cells} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


def vocabulary(random: np.random.Generator) -> list[str]:
    """Return words that look English, so that they are stemmed and detected as such."""
    made: dict[str, None] = {}
    while len(made) < VOCABULARY:
        syllables = random.integers(2, 5)
        made[
            "".join(
                random.choice(list(LETTERS)) + random.choice(list(VOWELS)) for _ in range(syllables)
            )
        ] = None
    return list(made)


def zipf(random: np.random.Generator, words: Sequence[str], size: int) -> list[str]:
    """Draw words by Zipf's law."""
    ranks = np.minimum(random.zipf(1.3, size=size) - 1, len(words) - 1)
    return [words[rank] for rank in ranks]


def question(random: np.random.Generator, words: Sequence[str]) -> str:
    """Return an English question of drawn words."""
    return "what is the " + " ".join(zipf(random, words, QUERY_WORDS)) + " of this"


def fill(
    session: Session, tenant: str, size: int, random: np.random.Generator, words: Sequence[str]
) -> tuple[Collection, np.ndarray, list[str]]:
    """Write a collection of one tenant; every tenth document has an access list."""
    assert session.embedder is not None
    dimension = session.embedder.dimension
    collection = session.store.intake.open_collection(tenant, "bench", None)
    rows = random.standard_normal((size, dimension)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    texts = [" ".join(zipf(random, words, WORDS_PER_CHUNK)) for _ in range(size)]
    number = count()
    for start in range(0, size, BATCH):
        documents, vectors = [], {}
        for row in range(start, min(start + BATCH, size)):
            n = next(number)
            key = f"{tenant}-{n}"
            documents.append(_document(key, n, texts[row]))
            vectors[key] = rows[row]
        session.store.intake.write_vectors(
            collection.id, session.embedder.model_id, vectors, {}, []
        )
        session.store.intake.write_batch(collection, Changes(documents), OPERATOR)
    return collection, rows, texts


def _document(key: str, n: int, text: str) -> DocumentRow:
    chunk = ChunkRow(
        chunk_id=f"{abs(hash(key)):024x}"[:24], ordinal=0, text=text, kind="text", section="",
        page=None, tokens=len(text) // 4, content_hash=key,
    )  # fmt: skip
    return DocumentRow(
        key=key, document_id=key, file=key, source=f"s{n % SHARE}/{key}", title="", format="text",
        language="en", is_record=False, version="", updated_at="", content_hash=key, metadata={},
        fields=[], chunks=[chunk], acl=frozenset({"role:r1"} if n % 10 == 0 else ()),
    )  # fmt: skip


def floor_search(
    session: Session, rows: np.ndarray, texts: Sequence[str]
) -> Callable[[str], object]:
    """Return a search of nothing but the unavoidable."""
    index = bm25s.BM25()
    index.index([text.split() for text in texts], show_progress=False)
    embedder = session.embedder
    assert embedder is not None

    def search(text: str) -> object:
        vector = embedder.embed_query(text)
        scores = rows @ vector
        best = np.argpartition(-scores, 10)[:10]
        lexical = index.get_scores([word for word in text.split() if word in index.vocab_dict])
        return best, np.argpartition(-lexical, 10)[:10]

    return search


def hybrid(
    index: Index, auth: AuthContext, sources: tuple[str, ...] = ()
) -> Callable[[str], object]:
    """Return the search of the product."""
    return lambda text: run_pipeline(
        index, Query(text, auth, sources, "en"), "hybrid", index.settings.retrieval.top_k
    )


def timed(search: Callable[[str], object], texts: object, n: int) -> list[float]:
    """Return milliseconds of n searches after five to warm up; no text comes twice."""
    times = []
    for turn in range(n + 5):
        text = next(texts)  # type: ignore[call-overload]
        started = time.perf_counter()
        search(text)
        if turn >= 5:
            times.append(1000 * (time.perf_counter() - started))
    return times


if __name__ == "__main__":
    main()
