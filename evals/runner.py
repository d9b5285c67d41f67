"""Run every query of a data set through one pipeline: what it ranks, and how long it takes."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from dataclasses import dataclass
from itertools import cycle, islice

from app.session import Session
from core.errors import CallerError
from core.language.detect import detect_language
from evals.corpus import AUTH, COLLECTION, Corpus, Progress, open_corpus
from evals.dataset import Dataset, JudgedQuery, listed
from evals.searchers import Hits, Searcher, make_searcher

WARMUP = 3  # searches before the first one that is timed

UNDETERMINED = "und"
NOTES_SHOWN = 5
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True)
class QueryRun:
    """Hold what one query found: (document, score) pairs, best first.

    `ms` is None when the query was not accepted; `distance` is 1 − cosine between the query and
    the best chunk, None where the embedder cannot tell.
    """

    query: JudgedQuery
    language: str
    ranking: list[tuple[str, float]]
    ms: float | None
    distance: float | None = None

    @property
    def first_relevant(self) -> int | None:
        """Return the rank, from 1, of the first relevant document."""
        relevant = self.query.relevant
        ranks = (rank for rank, (name, _) in enumerate(self.ranking, 1) if name in relevant)
        return next(ranks, None)


@dataclass(frozen=True)
class PipelineRun:
    """Hold the runs of all queries, in the order of the data set."""

    pipeline: str
    runs: list[QueryRun]
    warnings: list[str]
    notes: list[str]


def run_queries(
    dataset: Dataset, corpus: Corpus, pipeline: str, progress: Progress, *, distances: bool = False
) -> PipelineRun:
    """Run all queries of a data set; a query the pipeline does not accept finds nothing.

    The session is a new one, so that no pipeline is faster for what another has left in a cache.
    """
    runs: list[QueryRun] = []
    notes: Counter[str] = Counter()
    refused: list[str] = []
    with open_corpus(corpus.settings) as session:
        searcher = make_searcher(session, pipeline, AUTH, COLLECTION)
        _warm_up(searcher, dataset, WARMUP)
        for done, query in enumerate(dataset.queries, start=1):
            try:
                ms, hits = _timed(searcher, query.text)
            except CallerError as error:
                refused.append(f"{query.query_id} ({error.rule})")
                ms, hits = None, Hits()
            notes.update(set(hits.notes))
            language = query.language or detect_language(query.text)
            distance = _distance(session, query, hits) if distances else None
            runs.append(QueryRun(query, language, hits.documents(), ms, distance))
            progress(pipeline, done, len(dataset.queries))
        warnings = list(session.warnings)
    if refused:
        warnings.append(
            f"queries that {pipeline} does not accept count as nothing found: {listed(refused)}"
        )
    return PipelineRun(pipeline, runs, warnings, summed_notes(notes, len(runs)))


def summed_notes(notes: Counter[str], queries: int) -> list[str]:
    """Return the most frequent notes; where only figures differ they are one, with "…"."""
    alike: dict[str, Counter[str]] = {}
    for note, count in notes.items():
        alike.setdefault(_FIGURE.sub("…", note), Counter())[note] = count
    found = [
        (same.total(), next(iter(same)) if len(same) == 1 else pattern)
        for pattern, same in alike.items()
    ]
    found.sort(key=lambda item: (-item[0], item[1]))
    return [f"{note} ({count} of {queries} queries)" for count, note in found[:NOTES_SHOWN]]


def _timed(searcher: Searcher, text: str) -> tuple[float, Hits]:
    started = time.perf_counter()
    found = searcher.search(text)
    ms = (time.perf_counter() - started) * 1000
    return ms, searcher.deep(text, found)


def _warm_up(searcher: Searcher, dataset: Dataset, count: int) -> None:
    for text in warm_up_texts(dataset, count):
        try:
            searcher.search(text)
        except CallerError:
            continue  # a text that is not accepted warms nothing; the others do


def warm_up_texts(dataset: Dataset, count: int) -> list[str]:
    """Return texts that no evaluated query has: the vector of a timed query must not be cached.

    Queries that are not evaluated come first; when there are none, two that are, joined.
    """
    evaluated = [query.text for query in dataset.queries]
    unused = [query.text for query in dataset.unused if query.text not in set(evaluated)]
    joined = [f"{a} {b}" for a, b in zip(evaluated, [*evaluated[1:], evaluated[0]], strict=True)]
    return list(islice(cycle(unused or joined), count))


def _distance(session: Session, query: JudgedQuery, found: Hits) -> float | None:
    embedder = session.remembering(AUTH.tenant)
    if embedder is None or not found.hits:
        return None
    served = embedder.languages
    if served is not None and detect_language(query.text) not in served | {UNDETERMINED}:
        return None
    collection = session.catalogue.collection(AUTH.tenant, COLLECTION)
    search = session.store.search
    stored = search.vectors(collection.id, [found.hits[0].chunk_id])[0]
    similarity = float(embedder.embed_query(query.text) @ stored)
    return None if math.isnan(similarity) else 1.0 - similarity
