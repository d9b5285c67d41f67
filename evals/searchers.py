"""Ask one collection in the ways that are compared: a retrieval pipeline, or the whole agent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from app.session import Session
from core.auth import AuthContext
from core.errors import CallerError
from core.language.detect import detect_language
from core.types import Evidence
from graph.context import PipelineName
from retrievers.pipelines import PIPELINES as RETRIEVAL
from retrievers.pipelines import run_pipeline
from retrievers.types import Query

AGENTIC: PipelineName = "agentic"
AUTO: PipelineName = "auto"
WHOLE = (AGENTIC, AUTO)  # what is timed is the whole answer
PIPELINES = (*RETRIEVAL, *WHOLE)


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


class Searcher(Protocol):
    """Answer queries from one open collection."""

    def search(self, text: str) -> Hits:
        """Search as a user would; this is what is timed."""

    def deep(self, text: str, found: Hits) -> Hits:
        """Rank as many documents as can be, given what `search` found."""


class PipelineSearcher:
    """Search with one of the retrieval pipelines."""

    def __init__(self, session: Session, pipeline: str, auth: AuthContext, name: str) -> None:
        """Search the collection `name` as `auth`."""
        self._index = session.index(session.catalogue.collection(auth.tenant, name))
        self._pipeline = pipeline
        self._auth = auth

    def search(self, text: str) -> Hits:
        """Return the usual number of chunks."""
        return self._run(text, self._index.settings.retrieval.top_k, choose=True)

    def deep(self, text: str, found: Hits) -> Hits:
        """Return many more chunks, since several may belong to one document."""
        return self._run(text, self._index.settings.evaluation.depth, choose=False)

    def _run(self, text: str, top_k: int, *, choose: bool) -> Hits:
        query = Query(text, self._auth, language=detect_language(text))
        found = run_pipeline(self._index, query, self._pipeline, top_k, choose=choose)
        return Hits(_from_evidence(found.evidence), found.notes)


class AgenticSearcher:
    """Answer with the whole graph; its evidence, best first, is the ranking."""

    def __init__(
        self, session: Session, pipeline: PipelineName, auth: AuthContext, name: str
    ) -> None:
        """Ask the collection `name` as `auth`."""
        self._session = session
        self._pipeline = pipeline
        self._auth = auth
        self._name = name

    def search(self, text: str) -> Hits:
        """Answer the query."""
        run = self._session.ask(text, self._auth, self._name, pipeline=self._pipeline)
        return Hits(_from_result(run.result["evidence"]), run.result["warnings"])

    def deep(self, text: str, found: Hits) -> Hits:
        """Return what was found: an answer has no more evidence than it has."""
        return found


def make_searcher(session: Session, pipeline: str, auth: AuthContext, name: str) -> Searcher:
    """Return the searcher of one of PIPELINES."""
    for whole in WHOLE:
        if pipeline == whole:
            return AgenticSearcher(session, whole, auth, name)
    return PipelineSearcher(session, pipeline, auth, name)


def checked_pipeline(name: str, *, allowed: tuple[str, ...] = PIPELINES) -> str:
    """Return the name of a pipeline, or say which ones there are."""
    if name not in allowed:
        raise CallerError(
            "the pipeline must be known", value=name, hint=f"choose from {', '.join(allowed)}"
        )
    return name


def _from_evidence(evidence: Iterable[Evidence]) -> list[Hit]:
    return [Hit(item.document_id, item.chunk_id, item.score) for item in evidence]


def _from_result(evidence: Iterable[dict[str, Any]]) -> list[Hit]:
    return [Hit(item["document_id"], item["chunk_id"], item["score"]) for item in evidence]
