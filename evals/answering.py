"""Ask every question of a data set as a person would, and keep what each run came to."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, get_args

from app.session import Session
from core.errors import CallerError
from core.language.detect import detect_language
from core.trace import RunRecord, Step
from evals.corpus import AUTH, COLLECTION, Corpus, Progress, open_corpus
from evals.dataset import Dataset, JudgedQuery, listed
from evals.runner import WARMUP, summed_notes, warm_up_texts
from graph.context import PipelineName

ANSWERING: tuple[PipelineName, ...] = get_args(PipelineName)
NOT_ACCEPTED = "not_accepted"


@dataclass(frozen=True)
class AnswerOutcome:
    """One judged query and how it was answered; `ms` is the wall-clock time of the answer.

    A question that is not accepted has no time and a rule that it `breaks`, and counts as refused.
    """

    query: JudgedQuery
    language: str
    ms: float | None = None
    result: dict[str, Any] = field(default_factory=dict)
    trail: list[Step] = field(default_factory=list)
    breaks: str = ""

    @property
    def refused(self) -> bool:
        """Tell whether there was no answer."""
        return bool(self.result.get("refused", True))

    @property
    def stop_reason(self) -> str:
        """Return why the run ended."""
        return str(self.result.get("stop_reason", NOT_ACCEPTED))

    @property
    def cited(self) -> frozenset[str]:
        """Return the ids of the documents that the answer cites."""
        return frozenset(one["document_id"] for one in self._citations())

    @property
    def said(self) -> list[str]:
        """Return the sentences of the answer and those they cite."""
        claims = [claim["text"] for claim in self.result.get("claims", [])]
        return [*claims, *(one["quote"] for one in self._citations())]

    @property
    def operations(self) -> int | None:
        """Return how many operations the plan of the run had, None where it tells none."""
        plan = self.result.get("plan")
        listed_ones = plan.get("operations") if isinstance(plan, dict) else None
        return len(listed_ones) if isinstance(listed_ones, list) else None

    def spent(self, name: str) -> float | None:
        """Return one figure of the run's usage."""
        value = self.result.get("usage", {}).get(name)
        return None if value is None else float(value)

    def _citations(self) -> list[dict[str, Any]]:
        return [one for claim in self.result.get("claims", []) for one in claim["citations"]]


@dataclass(frozen=True)
class AnswersRun:
    """Hold the runs of all questions, in the order of the data set."""

    pipeline: PipelineName
    asked: list[AnswerOutcome]
    warnings: list[str]
    notes: list[str]


def checked_answering(name: str) -> PipelineName:
    """Return the name of a pipeline that answers, or say which ones there are."""
    for known in ANSWERING:
        if name == known:
            return known
    raise CallerError(
        "the pipeline must be one that answers",
        value=name,
        hint=f"choose from {', '.join(ANSWERING)}",
    )


def ask_all(
    dataset: Dataset, corpus: Corpus, pipeline: PipelineName, progress: Progress
) -> AnswersRun:
    """Ask all questions of a data set, in a session that no other pipeline has warmed."""
    asked: list[AnswerOutcome] = []
    with open_corpus(corpus.settings) as session:
        warm_up(session, dataset, pipeline, WARMUP)
        for done, query in enumerate(dataset.queries, start=1):
            asked.append(ask_one(session, query, pipeline))
            progress(f"{pipeline} answers", done, len(dataset.queries))
        warnings = list(session.warnings)
    refused = [f"{one.query.query_id} ({one.breaks})" for one in asked if one.breaks]
    if refused:
        warnings.append(
            f"questions that {pipeline} does not accept count as refused: {listed(refused)}"
        )
    notes = Counter(note for one in asked for note in set(one.result.get("warnings", [])))
    return AnswersRun(pipeline, asked, warnings, summed_notes(notes, len(asked)))


def ask_one(session: Session, query: JudgedQuery, pipeline: PipelineName) -> AnswerOutcome:
    """Ask one question and time the whole answer."""
    language = query.language or detect_language(query.text)
    started = time.perf_counter()
    try:
        run: RunRecord = session.ask(query.text, AUTH, COLLECTION, pipeline=pipeline)
    except CallerError as error:
        return AnswerOutcome(query, language, breaks=error.rule)
    ms = (time.perf_counter() - started) * 1000
    return AnswerOutcome(query, language, ms, run.result, run.trail)


def warm_up(session: Session, dataset: Dataset, pipeline: PipelineName, count: int) -> None:
    """Ask questions that are not measured, so that no first one pays for what is loaded late."""
    for text in warm_up_texts(dataset, count):
        try:
            session.ask(text, AUTH, COLLECTION, pipeline=pipeline)
        except CallerError:
            continue  # a text that is not accepted warms nothing; the others do
