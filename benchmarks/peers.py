r"""Measure hybrid search of other frameworks and of Carrel on the same passages, in one run.

    pip install langchain-classic langchain-community langchain-chroma rank_bm25 \
        llama-index-core llama-index-retrievers-bm25 haystack-ai
    python -m benchmarks.peers DATASET_DIR [--distractors DATASET_DIR...]
        [--sizes 5183 25000] [--queries 60] [--out FILE]

Install the frameworks into an environment of its own that sees Carrel's. All of them embed with the
same ONNX all-MiniLM; each is configured as its documentation shows, top 10 of both channels fused.
The distractors fill the corpus up to the largest of --sizes passages. nDCG@10 is that of the first
queries.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from app.session import Session
from benchmarks.baselines import cached_vectors
from core.auth import AuthContext
from core.settings import Settings, load_settings
from evals.dataset import JudgedQuery, find_file, read_dataset, read_objects
from evals.summary import query_metrics
from ingest.pipeline import Pipeline
from models.embeddings import Embedder
from retrievers.pipelines import run_pipeline
from retrievers.types import Query

TOP = 10
DEEP = 30  # chunks of Carrel that hold at least ten documents
WARM_UP = 5
Passages = Sequence[tuple[str, str, str]]  # id, title, text
Search = Callable[[str], list[str]]  # ids, best first


def main() -> None:
    """Run and print a Markdown table."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--distractors", nargs="*", type=Path, default=[])
    parser.add_argument("--sizes", nargs="+", type=int, default=[1_000_000])
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    dataset = read_dataset(given.folder, limit=given.queries + WARM_UP, allow_missing=True)
    sets = collect(given.folder, given.distractors)
    passages = [passage for part in sets for passage in part][: max(given.sizes)]
    queries = dataset.queries[: given.queries]
    warm = [query.text for query in dataset.queries[given.queries :]] or [queries[0].text + "?"]
    lines = ["| what | passages | n | p50 ms | p95 ms | nDCG@10 |", "|---|--:|--:|--:|--:|--:|"]
    with tempfile.TemporaryDirectory(prefix="carrel-peers-") as folder:
        settings, _ = load_settings({"data": Path(folder) / "carrel", "cache": Settings().cache})
        with Session(settings, create=True, needs_embedder=True) as session:
            assert session.embedder is not None
            texts = [text for part in sets for text in whole(part)]
            note(f"embedding {len(texts)} passages once for the frameworks")
            cache = settings.cache.expanduser()
            rows = np.concatenate(
                [cached_vectors(whole(part), session.embedder, cache) for part in sets]
            )
            for size in sorted(given.sizes):
                for name, build in BUILDERS.items():
                    note(f"building {name}")
                    part = (passages[:size], texts[:size], rows[:size])
                    place = Path(folder) / f"{build.__name__}-{size}"
                    search = build(*part, session.embedder, place, session)
                    lines.append(measured(name, search, queries, warm, len(part[0])))
                    note(lines[-1])
    text = "\n".join(lines)
    print(text)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")


def measured(
    name: str, search: Search, queries: Sequence[JudgedQuery], warm: Sequence[str], passages: int
) -> str:
    """Return the line of one framework."""
    for text in warm:
        search(text)
    times, rankings = [], []
    for query in queries:
        started = time.perf_counter()
        found = search(query.text)
        times.append(1000 * (time.perf_counter() - started))
        rankings.append(list(dict.fromkeys(found)))
    scores = query_metrics([query.grades for query in queries], rankings)
    quality = mean(row["ndcg@10"] for row in scores)
    p50, p95 = median(times), float(np.percentile(times, 95))
    return f"| {name} | {passages} | {len(queries)} | {p50:.1f} | {p95:.1f} | {quality:.3f} |"


def collect(folder: Path, distractors: Sequence[Path]) -> list[list[tuple[str, str, str]]]:
    """Return the passages of a data set, then those of others under ids of their own."""
    sets = []
    for place, source in enumerate([folder, *distractors]):
        prefix = "" if place == 0 else f"{source.name}/"
        corpus = find_file(source, "corpus.jsonl", "corpus.jsonl.gz")
        rows = [item for _, item in read_objects(corpus, "")]
        sets.append(
            [
                (f"{prefix}{row['_id']}", str(row.get("title") or ""), str(row.get("text") or ""))
                for row in rows
            ]
        )
    return sets


def whole(passages: Passages) -> list[str]:
    """Return each passage under its title, as one text."""
    return [f"{title} {text}".strip() for _, title, text in passages]


def floor(passages: Passages, texts: Any, rows: Any, embedder: Embedder, *_: Any) -> Search:
    """Return the unavoidable: embedding, exact scan, bm25s; ranked by reciprocal ranks."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    index = bm25s.BM25()
    tokens = bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)
    index.index(tokens, show_progress=False)

    def search(text: str) -> list[str]:
        vector = rows @ embedder.embed_query(text)
        words = bm25s.tokenize(
            [text], stopwords="en", stemmer=stemmer, show_progress=False, return_ids=False
        )[0]
        lexical = index.get_scores(words)
        scores: dict[int, float] = {}
        for channel in (vector, lexical):
            best = np.argpartition(-channel, 100)[:100]
            for rank, row in enumerate(best[np.argsort(-channel[best])].tolist(), start=1):
                scores[row] = scores.get(row, 0.0) + 1 / (60 + rank)
        return [passages[row][0] for row in sorted(scores, key=lambda r: -scores[r])[:TOP]]

    return search


def carrel(
    passages: Passages, texts: Any, rows: Any, embedder: Embedder, folder: Path, session: Session
) -> Search:
    """Return Carrel's hybrid search over files it ingests itself, those of a smaller size kept."""
    folder.mkdir(parents=True)
    collection = session.store.intake.open_collection("bench", "peers", None)
    known = session.store.intake.document_hashes(collection)
    source = folder / f"{folder.name}.jsonl"
    with source.open("w", encoding="utf-8") as handle:
        for name, title, text in passages:
            if name not in known:
                handle.write(json.dumps({"_id": name, "title": title, "text": text}) + "\n")
    Pipeline(session.store, embedder, session.settings, collection).run([source])
    index = session.index(collection)
    auth = AuthContext(tenant="bench")

    def search(text: str) -> list[str]:
        found = run_pipeline(index, Query(text, auth), "hybrid", DEEP, choose=False)
        return [item.document_id for item in found.evidence]

    return search


def langchain(
    passages: Passages, texts: Any, rows: Any, embedder: Embedder, folder: Path, *_: Any
) -> Search:
    """Return EnsembleRetriever over rank_bm25 and Chroma."""
    from langchain_chroma import Chroma
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_community.retrievers import BM25Retriever
    from langchain_core.embeddings import Embeddings

    class Adapter(Embeddings):
        def embed_documents(self, given: list[str]) -> list[list[float]]:
            return [list(map(float, row)) for row in embedder.embed_documents(given)]

        def embed_query(self, text: str) -> list[float]:
            return list(map(float, embedder.embed_query(text)))

    names = [{"id": name} for name, _, _ in passages]
    store = Chroma(
        collection_name="peers", embedding_function=Adapter(), persist_directory=str(folder),
        collection_metadata={"hnsw:space": "cosine"},
    )  # fmt: skip
    for start in range(0, len(texts), 500):
        end = start + 500
        store._collection.add(
            ids=[str(n) for n in range(start, min(end, len(texts)))],
            embeddings=rows[start:end], documents=texts[start:end], metadatas=names[start:end],
        )  # fmt: skip
    words = BM25Retriever.from_texts(texts, metadatas=names, k=TOP)
    vectors = store.as_retriever(search_kwargs={"k": TOP})
    both = EnsembleRetriever(retrievers=[words, vectors], weights=[0.5, 0.5])
    return lambda text: [str(item.metadata["id"]) for item in both.invoke(text)][:TOP]


def llama_index(passages: Passages, texts: Any, rows: Any, embedder: Embedder, *_: Any) -> Search:
    """Return QueryFusionRetriever over llama-index's BM25 and its vector index."""
    import Stemmer
    from llama_index.core import VectorStoreIndex
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    class Adapter(BaseEmbedding):
        def _get_query_embedding(self, query: str) -> list[float]:
            return list(map(float, embedder.embed_query(query)))

        def _get_text_embedding(self, text: str) -> list[float]:
            return list(map(float, embedder.embed_documents([text])[0]))

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

    nodes = [
        TextNode(id_=name, text=text, embedding=list(map(float, row)))
        for (name, _, _), text, row in zip(passages, texts, rows, strict=True)
    ]
    index = VectorStoreIndex(nodes, embed_model=Adapter())
    words = BM25Retriever.from_defaults(
        nodes=nodes, similarity_top_k=TOP, stemmer=Stemmer.Stemmer("english"), language="english"
    )
    fusion = QueryFusionRetriever(
        [index.as_retriever(similarity_top_k=TOP), words], llm=MockLLM(), similarity_top_k=TOP,
        num_queries=1, mode="reciprocal_rerank", use_async=False,
    )  # fmt: skip
    return lambda text: [item.node.node_id for item in fusion.retrieve(text)]


def haystack(passages: Passages, texts: Any, rows: Any, embedder: Embedder, *_: Any) -> Search:
    """Return haystack's in-memory BM25 and embedding retrievers, joined by reciprocal ranks."""
    from haystack import Document, Pipeline
    from haystack.components.joiners import DocumentJoiner
    from haystack.components.retrievers.in_memory import (
        InMemoryBM25Retriever,
        InMemoryEmbeddingRetriever,
    )
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents([
        Document(id=name, content=text, embedding=list(map(float, row)))
        for (name, _, _), text, row in zip(passages, texts, rows, strict=True)
    ])  # fmt: skip
    pipeline = Pipeline()
    pipeline.add_component("words", InMemoryBM25Retriever(store, top_k=TOP))
    pipeline.add_component("vectors", InMemoryEmbeddingRetriever(store, top_k=TOP))
    join = DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=TOP)
    pipeline.add_component("join", join)
    pipeline.connect("words", "join")
    pipeline.connect("vectors", "join")

    def search(text: str) -> list[str]:
        vector = list(map(float, embedder.embed_query(text)))
        found = pipeline.run({"words": {"query": text}, "vectors": {"query_embedding": vector}})
        return [item.id for item in found["join"]["documents"]]

    return search


def note(text: str) -> None:
    """Tell how far the work is."""
    print(text, file=sys.stderr, flush=True)


BUILDERS: dict[str, Callable[..., Search]] = {
    "floor (ONNX + numpy + bm25s, RRF)": floor,
    "Carrel hybrid": carrel,
    "LangChain EnsembleRetriever (rank_bm25 + Chroma)": langchain,
    "llama-index QueryFusionRetriever": llama_index,
    "haystack in-memory hybrid": haystack,
}


if __name__ == "__main__":
    main()
