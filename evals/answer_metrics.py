"""Figures of one answer, and of all answers of a pipeline: shares, intervals, what they cost.

A figure that a question cannot have is None and counts nowhere: citations of a question without a
relevant document, containment of a gold answer that is yes or no.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from core.settings import Settings
from evals.answering import Asked
from evals.containment import contains_answer, judged_answers
from evals.statistics import Difference, differences, intervals, percentile
from evals.summary import (
    DIGITS,
    LATENCY,
    in_group,
    language_of,
    languages,
    rounded,
    type_of,
    types,
)

Figure = Callable[[Asked], float | None]


def answered(asked: Asked) -> float:
    """Return 1 for an answer."""
    return float(not asked.refused)


def refused(asked: Asked) -> float:
    """Return 1 for a refusal."""
    return float(asked.refused)


def refused_rightly(asked: Asked) -> float | None:
    """Return 1 for a refusal, of questions without a relevant document and without an answer."""
    asks = asked.query.relevant or asked.query.answers
    return None if asks else refused(asked)


def any_gold_cited(asked: Asked) -> float | None:
    """Return 1 when a relevant document is cited."""
    relevant = asked.query.relevant
    return float(bool(relevant & asked.cited)) if relevant else None


def all_gold_cited(asked: Asked) -> float | None:
    """Return 1 when every relevant document is cited."""
    relevant = asked.query.relevant
    return float(relevant <= asked.cited) if relevant else None


def citation_precision(asked: Asked) -> float | None:
    """Return the share of the cited documents that are relevant; a refusal cites nothing."""
    relevant, cited = asked.query.relevant, asked.cited
    return len(relevant & cited) / len(cited) if relevant and cited else None


def answer_contained(asked: Asked) -> float | None:
    """Return 1 when a gold answer stands within a sentence of the answer or one it cites."""
    gold = judged_answers(asked.query.answers)
    return float(contains_answer(gold, asked.said)) if gold else None


METRICS: dict[str, Figure] = {
    found.__name__: found
    for found in (
        *(answered, refused, refused_rightly),
        *(any_gold_cited, all_gold_cited, citation_precision, answer_contained),
    )
}
SPENT = ("tool_calls", "tokens", "model_calls", "cost")
OPERATIONS = "operations"
SHARES = {"p50": 0.5, "p95": 0.95}


def figures(asked: Sequence[Asked], settings: Settings) -> dict[str, Any]:
    """Return n and for each metric its mean, its interval and how many questions have it."""
    columns = {name: _present(asked, found) for name, found in METRICS.items()}
    return {
        "n": len(asked),
        "metrics": {name: _mean(column) for name, column in columns.items()},
        "ci": {
            name: rounded(intervals([column], settings)[0]) if column else None
            for name, column in columns.items()
        },
        "counts": {name: len(column) for name, column in columns.items()},
    }


def grouped(asked: list[Asked], settings: Settings) -> dict[str, Any]:
    """Return the figures per question type and per language, where there are such."""
    groups: dict[str, Any] = {}
    for key, names, kind in (
        ("by_type", types(asked), type_of),
        ("by_language", languages(asked), language_of),
    ):
        if names:
            groups[key] = {
                name: figures([one for one in asked if in_group(kind, name)(one)], settings)
                for name in names
            }
    return groups


def spent(asked: Sequence[Asked]) -> dict[str, Any]:
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


def degraded(asked: Sequence[Asked]) -> int:
    """Count the questions of which a decision was made by the rules in the model's place."""
    return sum(1 for one in asked if one.spent("degraded"))


def stop_reasons(asked: Sequence[Asked]) -> dict[str, int]:
    """Count why the runs ended, the most frequent first."""
    return dict(Counter(one.stop_reason for one in asked).most_common())


def compared(
    first: Sequence[Asked], second: Sequence[Asked], settings: Settings
) -> dict[str, Difference]:
    """Return first − second per metric, and of the time, over the questions that have both."""
    named = {}
    for name, found in {**METRICS, LATENCY: _ms}.items():
        pairs = [(found(a), found(b)) for a, b in zip(first, second, strict=True)]
        both = [(a, b) for a, b in pairs if a is not None and b is not None]
        if both:
            mine, theirs = zip(*both, strict=True)
            named[name] = differences([mine], [theirs], settings)[0]
    return named


def question_rows(asked: Sequence[Asked]) -> list[dict[str, Any]]:
    """Return one object per question, so that failures can be looked at."""
    return [
        {
            "id": one.query.query_id,
            "type": one.query.type,
            "answered": not one.refused,
            "contained": _told(answer_contained(one)),
            "gold_cited": _told(any_gold_cited(one)),
            "all_gold_cited": _told(all_gold_cited(one)),
            "stop_reason": one.stop_reason,
            "ms": None if one.ms is None else round(one.ms, 1),
            OPERATIONS: one.operations,
        }
        for one in asked
    ]


def _told(value: float | None) -> bool | None:
    return None if value is None else bool(value)


def _ms(asked: Asked) -> float | None:
    return asked.ms


def _present(asked: Sequence[Asked], found: Figure) -> list[float]:
    return [value for one in asked if (value := found(one)) is not None]


def _mean(column: Sequence[float]) -> float | None:
    return round(sum(column) / len(column), DIGITS) if column else None
