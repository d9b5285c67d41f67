"""Ask every question of a data set as a person would, and measure the answers."""

from __future__ import annotations

import re
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args

from app.session import Session
from core.errors import CallerError
from core.language.detect import detect_language
from core.language.scan import HAN, UNSPACED
from core.settings import Settings
from core.trace import RunRecord, Step
from evals.compare import checked_pair, corpus_warnings
from evals.corpus import AUTH, COLLECTION, Corpus, Progress, build_corpus, open_corpus
from evals.dataset import Dataset, JudgedQuery, listed
from evals.runner import checked_name, summed_notes, warm_up
from evals.summary import (
    CONFIDENCE,
    DIGITS,
    LATENCY,
    Difference,
    compare_pairs,
    difference_json,
    group_figures,
    intervals,
    latency,
    percentile,
    round_interval,
)
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
    def texts(self) -> list[str]:
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
    return checked_name(name, ANSWERING, "the pipeline must be one that answers")


def ask_all(
    dataset: Dataset, corpus: Corpus, pipeline: PipelineName, progress: Progress
) -> AnswersRun:
    """Ask all questions of a data set, in a session that no other pipeline has warmed."""
    asked: list[AnswerOutcome] = []
    with open_corpus(corpus.settings) as session:
        warm_up(dataset, lambda text: session.ask(text, AUTH, COLLECTION, pipeline=pipeline))
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


# Nothing that a sentence contains shows that it means yes.
YES_NO = frozenset(
    ("yes", "no", "true", "false", "да", "нет", "так", "ні", "是", "否", "不", "是的", "不是")
)
_WITHIN_NUMBERS = re.compile(r"(?<=\d)[.,'\u2019\u00a0\u202f](?=\d)")
_NO_WORD = re.compile(r"[\W_]+")
_SPACED = rf"[^\W{HAN}{UNSPACED}]"


def folded(text: str) -> str:
    """Return words with one blank between them, without case and punctuation.

    What groups or splits the digits of a number goes, so that a part of it is no number.
    """
    joined = _WITHIN_NUMBERS.sub("", unicodedata.normalize("NFKC", text).casefold())
    return _NO_WORD.sub(" ", joined).strip()


def judged_answers(answers: Iterable[str]) -> list[str]:
    """Return the accepted answers that containment can judge: neither yes or no, nor nothing."""
    return [answer for answer in answers if folded(answer) and folded(answer) not in YES_NO]


def contains_answer(answers: Sequence[str], given: Iterable[str]) -> bool:
    """Tell whether any accepted answer stands as whole words within any of the texts.

    Characters of scripts without blanks between words are words by themselves.
    """
    patterns = [_pattern(folded(answer)) for answer in answers if folded(answer)]
    texts = [folded(text) for text in given]
    return any(pattern.search(text) for pattern in patterns for text in texts)


def _pattern(wanted: str) -> re.Pattern[str]:
    before = f"(?<!{_SPACED})" if re.match(_SPACED, wanted) else ""
    after = f"(?!{_SPACED})" if re.match(_SPACED, wanted[-1]) else ""
    return re.compile(before + re.escape(wanted) + after)


Figure = Callable[[AnswerOutcome], float | None]


def refused_rightly(asked: AnswerOutcome) -> float | None:
    """Return 1 for a refusal, of questions without a relevant document and without an answer."""
    asks = asked.query.relevant or asked.query.answers
    return None if asks else float(asked.refused)


def any_gold_cited(asked: AnswerOutcome) -> float | None:
    """Return 1 when a relevant document is cited."""
    relevant = asked.query.relevant
    return float(bool(relevant & asked.cited)) if relevant else None


def all_gold_cited(asked: AnswerOutcome) -> float | None:
    """Return 1 when every relevant document is cited."""
    relevant = asked.query.relevant
    return float(relevant <= asked.cited) if relevant else None


def citation_precision(asked: AnswerOutcome) -> float | None:
    """Return the share of the cited documents that are relevant; a refusal cites nothing."""
    relevant, cited = asked.query.relevant, asked.cited
    return len(relevant & cited) / len(cited) if relevant and cited else None


def answer_contained(asked: AnswerOutcome) -> float | None:
    """Return 1 when a gold answer stands within a sentence of the answer or one it cites."""
    gold = judged_answers(asked.query.answers)
    return float(contains_answer(gold, asked.texts)) if gold else None


METRICS: dict[str, Figure] = {
    "answered": lambda one: float(not one.refused),
    "refused": lambda one: float(one.refused),
    "refused_rightly": refused_rightly,
    "any_gold_cited": any_gold_cited,
    "all_gold_cited": all_gold_cited,
    "citation_precision": citation_precision,
    "answer_contained": answer_contained,
}
SPENT = ("tool_calls", "tokens", "model_calls", "cost")
OPERATIONS = "operations"
SHARES = {"p50": 0.5, "p95": 0.95}


Asked = TypeVar("Asked", bound=AnswerOutcome)


def figures(asked: Sequence[AnswerOutcome], settings: Settings) -> dict[str, Any]:
    """Return the figures of METRICS."""
    return measured_figures(asked, settings, METRICS)


def measured_figures(
    asked: Sequence[Asked],
    settings: Settings,
    measures: Mapping[str, Callable[[Asked], float | None]],
) -> dict[str, Any]:
    """Return n and for each measure its mean, its interval and how many questions have it."""
    columns = {
        name: [value for one in asked if (value := found(one)) is not None]
        for name, found in measures.items()
    }
    return {
        "n": len(asked),
        "metrics": {name: _mean(column) for name, column in columns.items()},
        "ci": {
            name: round_interval(intervals([column], settings)[0]) if column else None
            for name, column in columns.items()
        },
        "counts": {name: len(column) for name, column in columns.items()},
    }


def spent(asked: Sequence[AnswerOutcome]) -> dict[str, Any]:
    """Return mean, median and 95th percentile per question of what the runs spent.

    `operations` is None where no run tells its plan.
    """
    columns: dict[str, list[float]] = {
        name: [value for one in asked if (value := one.spent(name)) is not None] for name in SPENT
    }
    columns[OPERATIONS] = [float(one.operations) for one in asked if one.operations is not None]
    return {
        name: {
            "mean": _mean(column),
            **{key: round(percentile(column, share), DIGITS) for key, share in SHARES.items()},
        }
        if column
        else None
        for name, column in columns.items()
    }


def degraded(asked: Sequence[AnswerOutcome]) -> int:
    """Count the questions of which a decision was made by the rules in the model's place."""
    return sum(1 for one in asked if one.spent("degraded"))


def stop_reasons(asked: Sequence[AnswerOutcome]) -> dict[str, int]:
    """Count why the runs ended, the most frequent first."""
    return dict(Counter(one.stop_reason for one in asked).most_common())


def compared(
    first: Sequence[AnswerOutcome], second: Sequence[AnswerOutcome], settings: Settings
) -> dict[str, Difference]:
    """Return first − second per metric, and of the time, over the questions that have both."""
    named = {}
    measures: dict[str, Figure] = {**METRICS, LATENCY: lambda one: one.ms}
    for name, found in measures.items():
        pairs = [(found(a), found(b)) for a, b in zip(first, second, strict=True)]
        if (both := compare_pairs(pairs, settings)) is not None:
            named[name] = both
    return named


def question_rows(asked: Sequence[AnswerOutcome]) -> list[dict[str, Any]]:
    """Return one object per question, so that failures can be looked at."""
    return [
        {
            "id": one.query.query_id,
            "type": one.query.type,
            "answered": not one.refused,
            "contained": _as_bool(answer_contained(one)),
            "gold_cited": _as_bool(any_gold_cited(one)),
            "all_gold_cited": _as_bool(all_gold_cited(one)),
            "stop_reason": one.stop_reason,
            "ms": None if one.ms is None else round(one.ms, 1),
            OPERATIONS: one.operations,
        }
        for one in asked
    ]


def _as_bool(value: float | None) -> bool | None:
    return None if value is None else bool(value)


def _mean(column: Sequence[float]) -> float | None:
    return round(sum(column) / len(column), DIGITS) if column else None


def evaluate_answers(
    dataset: Dataset,
    pipeline: str,
    settings: Settings,
    progress: Progress,
    *,
    against: str | None = None,
) -> dict[str, Any]:
    """Return the figures of a pipeline's answers, as `carrel eval answers --json` prints them."""
    checked_pair(pipeline, against, checked_answering)
    corpus = build_corpus(dataset, settings, progress)
    mine = ask_all(dataset, corpus, checked_answering(pipeline), progress)
    result: dict[str, Any] = {
        "dataset": dataset.name,
        "confidence": CONFIDENCE,
        **answers_json(mine, settings),
    }
    warnings = [*corpus_warnings(dataset, corpus), *mine.warnings]
    if against is not None:
        theirs = ask_all(dataset, corpus, checked_answering(against), progress)
        result["against"] = {
            **answers_json(theirs, settings),
            "differences": difference_json(compared(mine.asked, theirs.asked, settings)),
        }
        warnings += [warning for warning in theirs.warnings if warning not in warnings]
    return {**result, "notes": mine.notes, "warnings": warnings}


def answers_json(run: AnswersRun, settings: Settings) -> dict[str, Any]:
    """Return the figures of one pipeline, whole, by group, and of each question."""
    return {
        "pipeline": run.pipeline,
        **figures(run.asked, settings),
        LATENCY: latency(run.asked),
        "spent": spent(run.asked),
        "degraded": degraded(run.asked),
        "stop_reasons": stop_reasons(run.asked),
        **group_figures(run.asked, lambda keep: figures([*filter(keep, run.asked)], settings)),
        "questions": question_rows(run.asked),
    }
