"""Run every query of a data set through one pipeline: what it ranks, and how long it takes."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import cycle, islice
from typing import TypeVar

from app.session import Session
from core.errors import CallerError
from core.language.detect import detect_language
from evals.corpus import AUTH, COLLECTION, Corpus, Progress, open_corpus
from evals.dataset import Dataset, JudgedQuery, listed
from graph.context import PipelineName
from retrievers.pipelines import PIPELINES as RETRIEVAL
from retrievers.pipelines import run_pipeline
from retrievers.types import Index, Query

AGENTIC: PipelineName = "agentic"
AUTO: PipelineName = "auto"
ANSWERING = (AGENTIC, AUTO)  # what is timed is the whole answer
PIPELINES = (*RETRIEVAL, *ANSWERING)


@dataclass(frozen=True)
class Hit:
    """Hold a chunk that was found."""

    document_id: str
    chunk_id: str
    score: float


@dataclass(frozen=True)
class Hits:
    """Hold what was found, best first, and notes on how."""

    hits: list[Hit] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def documents(self) -> list[tuple[str, float]]:
        """Return each document once, at the place and with the score of its best chunk."""
        best: dict[str, float] = {}
        for hit in self.hits:
            best.setdefault(hit.document_id, hit.score)
        return list(best.items())


@dataclass(frozen=True)
class Searcher:
    """Answer queries from the corpus of a session, with one of PIPELINES."""

    session: Session
    pipeline: str

    def search(self, text: str) -> Hits:
        """Search as a user would; this is what is timed.

        Where the whole graph answers, its evidence, best first, is the ranking.
        """
        for pipeline in ANSWERING:
            if self.pipeline == pipeline:
                result = self.session.ask(text, AUTH, COLLECTION, pipeline=pipeline).result
                names = ("document_id", "chunk_id", "score")
                found = [Hit(*(item[name] for name in names)) for item in result["evidence"]]
                return Hits(found, result["warnings"])
        return self._run(text, self._index.settings.retrieval.top_k, choose=True)

    def deep(self, text: str, found: Hits) -> Hits:
        """Rank as many documents as can be: many chunks, since several may be of one document.

        An answer has no more evidence than what `search` found.
        """
        if self.pipeline in ANSWERING:
            return found
        return self._run(text, self._index.settings.evaluation.depth, choose=False)

    @cached_property
    def _index(self) -> Index:
        return self.session.index(self.session.catalogue.collection(AUTH.tenant, COLLECTION))

    def _run(self, text: str, top_k: int, *, choose: bool) -> Hits:
        query = Query(text, AUTH, language=detect_language(text))
        found = run_pipeline(self._index, query, self.pipeline, top_k, choose=choose)
        hits = [Hit(item.document_id, item.chunk_id, item.score) for item in found.evidence]
        return Hits(hits, found.notes)


Name = TypeVar("Name", bound=str)


def checked_name(name: str, known: Sequence[Name], rule: str) -> Name:
    """Return a name that is known, or say which ones there are."""
    for one in known:
        if name == one:
            return one
    raise CallerError(rule, value=name, hint=f"choose from {', '.join(known)}")


def checked_pipeline(name: str) -> str:
    """Return the name of a pipeline, or say which ones there are."""
    return checked_name(name, PIPELINES, "the pipeline must be known")


WARMUP = 3  # searches before the first one that is timed; chosen, not measured

UNDETERMINED = "und"
NOTES_SHOWN = 5  # the most frequent ones; chosen
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
    ms: float | None
    notes: Counter[str] = Counter()
    refused: list[str] = []
    with open_corpus(corpus.settings) as session:
        searcher = Searcher(session, pipeline)
        warm_up(dataset, searcher.search)
        for done, query in enumerate(dataset.queries, start=1):
            try:
                started = time.perf_counter()
                hits = searcher.search(query.text)
                ms = (time.perf_counter() - started) * 1000
                hits = searcher.deep(query.text, hits)
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


def warm_up(dataset: Dataset, search: Callable[[str], object]) -> None:
    """Search for what is not measured, so that no first query pays for what is loaded late."""
    for text in warm_up_texts(dataset, WARMUP):
        with suppress(CallerError):  # a text that is not accepted warms nothing; the others do
            search(text)


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
