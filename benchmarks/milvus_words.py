"""Compare words in Milvus with those of the arrays: its own BM25, and sparse vectors of our terms.

python -m benchmarks.milvus_words DATASET... [--queries 300]. Each passage is one chunk. "arrays" is
what Carrel does; "function" is Milvus' BM25 function with the analyser that milvus-lite has, given
our stop words; "sparse" are vectors of our terms with weights of BM25, by inner product. Prints
nDCG@10 of words alone and milliseconds of a search. A full Milvus has more analysers.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import log
from pathlib import Path
from typing import Any

from pymilvus import DataType, Function, FunctionType, MilvusClient

from benchmarks.retrieval import main_language
from benchmarks.search_index import BATCH, POOL, judged
from benchmarks.segments import MODEL
from benchmarks.speed import percentiles
from core.auth import AuthContext
from core.language.analysis import content_terms, query_terms, terms
from core.language.cues import stopwords
from core.settings import Settings
from evals.dataset import Dataset, read_dataset, read_objects
from stores.sqlite.files import Changes
from stores.sqlite.permissions import OPERATOR
from stores.sqlite.rows import ChunkRow, DocumentRow
from stores.store import Store

K1, B = 1.2, 0.75
Rank = Callable[[str], list[str]]


@contextmanager
def arrays(names: list[str], texts: list[str], language: str) -> Iterator[Rank]:
    """Rank by the words that Carrel keeps."""
    auth = AuthContext(tenant="acme")
    with (
        tempfile.TemporaryDirectory() as folder,
        Store(Settings(data=Path(folder)), MODEL, create=True) as store,
    ):
        mine = store.intake.open_collection("acme", "main", None)
        for start in range(0, len(names), BATCH):
            some = range(start, min(start + BATCH, len(names)))
            rows = [row(f"{n:07}", texts[n], language) for n in some]
            store.intake.write_batch(mine, Changes(rows), OPERATOR)
        store.search.refresh(mine)

        def rank(question: str) -> list[str]:
            found = store.search.candidates(
                auth, mine.id, terms=query_terms(question, {language}), vector=None, pool=POOL
            )
            best = sorted(zip(-found.bm25, found.chunk_ids, strict=True))
            return [names[int(key.split("-")[0])] for _, key in best]

        yield rank


def row(name: str, text: str, language: str) -> DocumentRow:
    """Return a document of one chunk."""
    chunk = ChunkRow(f"{name}-0", 0, text, "text", "", None, len(text.split()), name)
    kept: dict[str, Any] = {one: "" for one in ("title", "version", "updated_at")}
    kept |= {"key": name, "document_id": name, "file": name, "source": "x", "content_hash": name}
    kept |= {"format": "text", "language": language, "is_record": False, "metadata": {}}
    return DocumentRow(**kept, fields=[], chunks=[chunk], acl=frozenset())


@contextmanager
def milvus(names: list[str], texts: list[str], language: str, kind: str) -> Iterator[Rank]:
    """Rank by Milvus' BM25 function, or by sparse vectors of our terms."""
    own = [Counter(terms(text, language)) for text in texts]
    mean = sum(one.total() for one in own) / len(own)
    having = Counter(term for one in own for term in one)
    place = {term: number for number, term in enumerate(having)}
    idf = {t: log(1 + (len(own) - n + 0.5) / (n + 0.5)) for t, n in having.items()}
    with tempfile.TemporaryDirectory() as folder:
        client = MilvusClient(f"{folder}/words.db")
        schema = client.create_schema(auto_id=False)
        schema.add_field("id", DataType.INT64, is_primary=True)
        schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
        if kind == "function":
            stop = {"type": "stop", "stop_words": sorted(stopwords(language))}
            analyzer = {"tokenizer": "jieba" if language == "zh" else "standard", "filter": [stop]}
            text = {"max_length": 65_535, "enable_analyzer": True, "analyzer_params": analyzer}
            schema.add_field("text", DataType.VARCHAR, **text)
            schema.add_function(
                Function("bm25", FunctionType.BM25, input_field_names=["text"],
                         output_field_names=["sparse"])
            )  # fmt: skip
        index = client.prepare_index_params()
        metric = "BM25" if kind == "function" else "IP"
        index.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type=metric)
        client.create_collection("words", schema=schema, index_params=index)

        def weights(counts: Counter[str]) -> dict[int, float]:
            base = K1 * (1 - B + B * counts.total() / mean)
            return {place[t]: n * (K1 + 1) / (n + base) for t, n in counts.items()} or {0: 1e-9}

        for start in range(0, len(names), BATCH):
            some = range(start, min(start + BATCH, len(names)))
            key, value = ("text", texts) if kind == "function" else ("sparse", None)
            rows = [{"id": n, key: value[n] if value else weights(own[n])} for n in some]
            client.insert("words", rows)
        client.flush("words")
        client.load_collection("words")

        def rank(question: str) -> list[str]:
            asked: Any = question
            if kind == "sparse":
                wanted = set(content_terms(question, language)) & place.keys()
                asked = {place[term]: idf[term] for term in wanted}
            hits = client.search("words", data=[asked], anns_field="sparse", limit=POOL)[0]
            return [names[hit["id"]] for hit in hits]

        yield rank
        client.close()


def report(dataset: Dataset) -> None:
    """Print a line for each way."""
    objects = [one for _, one in read_objects(dataset.corpus, "")]
    names = [str(one["_id"]) for one in objects]
    texts = [f"{one.get('title') or ''} {one.get('text') or ''}".strip() for one in objects]
    language = main_language(dataset)
    ways = [arrays(names, texts, language)]
    ways += [milvus(names, texts, language, kind) for kind in ("function", "sparse")]
    for kind, way in zip(("arrays", "function", "sparse"), ways, strict=True):
        with way as rank:
            rankings, spent = [], []
            for query in dataset.queries:
                began = time.perf_counter()
                rankings.append(rank(query.text))
                spent.append(1000 * (time.perf_counter() - began))
        quality = judged(dataset.queries, rankings, set(names))
        print(dataset.name, language, kind, quality, percentiles(spent), flush=True)


def main() -> None:
    """Compare on each data set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--queries", type=int, default=300)
    given = parser.parse_args()
    for folder in given.folders:
        report(read_dataset(folder, limit=given.queries, allow_missing=True))


if __name__ == "__main__":
    main()
