"""Tables of judged answers in Markdown: shares with their Wilson intervals, risk and coverage."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks.answer_judge import PLACES
from benchmarks.answer_sets import ANSWERABLE
from evals.summary import percentile

Row = dict[str, Any]
Z = 1.96  # of 95 %
COVERAGES = (0.2, 0.4, 0.6, 0.8, 1.0)


def share(values: Iterable[bool | float | None]) -> str:
    """Return a mean with its Wilson interval and n, "–" where nothing can be judged."""
    found = [float(value) for value in values if value is not None]
    if not found:
        return "–"
    n, p = len(found), sum(found) / len(found)
    middle, whole = p + Z * Z / (2 * n), 1 + Z * Z / n
    spread = Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    low, high = (middle - spread) / whole, (middle + spread) / whole
    return f"{_short(p)} ({_short(max(0.0, low))}–{_short(min(1.0, high))}; {n})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table whose columns but the first are aligned to the right."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def set_table(rows: Sequence[Row]) -> str:
    """Return one line for each set, and for each language and all together where several."""
    head = [
        *("set", "lang", "answered", "gold printed", "gold document cited", "wrong though cited"),
        *("unanswerable answered", "foreign answered", "p50 ms", "p95 ms"),
    ]
    return table(head, (_set_line(*group) for group in _groups(rows)))


def _set_line(name: str, rows: Sequence[Row]) -> list[str]:
    own = [row for row in rows if row["kind"] == ANSWERABLE]
    wrong = [row["answered"] and not row["printed"] for row in own if row["printed"] is not None]
    times = [row["ms"] for row in rows if row["ms"] is not None]
    return [
        name,
        ", ".join(sorted({row["language"] for row in rows})),
        share(row["answered"] for row in own),
        share(row["printed"] for row in own),
        share(row["gold_cited"] for row in own),
        share(wrong),
        *(
            share(row["answered"] for row in rows if row["kind"] == kind)
            for kind in ("unanswerable", "foreign")
        ),
        *(f"{percentile(times, at):.0f}" if times else "–" for at in (0.5, 0.95)),
    ]


def _groups(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    def by(key: str) -> list[tuple[str, list[Row]]]:
        names = dict.fromkeys(row[key] for row in rows)
        return [(name, [row for row in rows if row[key] == name]) for name in names]

    sets, languages = by("set"), by("language")
    several = [(f"all {name}", found) for name, found in languages] if len(languages) > 1 else []
    return [*sets, *several, *([("**all**", list(rows))] if len(sets) > 1 else [])]


def risk_table(rows: Sequence[Row]) -> str:
    """Return the share of wrong answers among the surest, by how many questions they are."""
    head = ["set", "judged", *(f"risk at {at:.0%} of the answers" for at in COVERAGES), "area"]
    return table(head, (line for group in _groups(rows) if (line := _risk_line(*group))))


def _risk_line(name: str, rows: Sequence[Row]) -> list[str]:
    judged = [row for row in rows if row["kind"] != ANSWERABLE or row["printed"] is not None]
    given = [row for row in judged if row["answered"]]
    if not given:
        return []
    risks = risk_curve([(row["confidence"], not row["printed"]) for row in given])
    at = [risks[max(0, math.ceil(coverage * len(risks)) - 1)] for coverage in COVERAGES]
    area = sum(risks) / len(risks)
    return [name, f"{len(given)} of {len(judged)}", *map(_short, at), _short(area)]


def risk_curve(answers: Iterable[tuple[float, bool]]) -> list[float]:
    """Return the share of wrong ones among the k surest of (confidence, wrong), for each k.

    Answers of equal confidence are in no order, so each counts as their mean.
    """
    ranked = sorted(answers, key=lambda one: -one[0])
    means: dict[float, list[bool]] = {}
    for value, wrong in ranked:
        means.setdefault(value, []).append(wrong)
    curve, total = [], 0.0
    for number, (value, _) in enumerate(ranked, start=1):
        total += sum(means[value]) / len(means[value])
        curve.append(total / number)
    return curve


def evidence_table(rows: Sequence[Row]) -> str:
    """Return where the gold answer stood, of the questions that can be judged."""
    judged = [row for row in rows if row["printed"] is not None]
    head = ("set", "n", *PLACES, "oracle: in a sentence of the evidence")
    return table(head, (_evidence_line(*group) for group in _groups(judged)))


def _evidence_line(name: str, rows: Sequence[Row]) -> list[str]:
    places = [sum(row["place"] == place for row in rows) / len(rows) for place in PLACES]
    oracle = sum(row["oracle"] for row in rows) / len(rows)
    return [name, str(len(rows)), *map(_short, places), _short(oracle)]


def typed_table(rows: Sequence[Row], key: str) -> str:
    """Return the share of right answers for each value of a key, and what the others break."""
    names = sorted({row[key] for row in rows})
    groups = [(name, [row for row in rows if row[key] == name]) for name in names]
    head = (key, "right", "refused wrongly", "answered though unanswerable", "p50 ms", "p95 ms")
    return table(head, (_typed_line(*group) for group in [*groups, ("**all**", list(rows))]))


def _typed_line(name: str, rows: Sequence[Row]) -> list[str]:
    times = [row["ms"] for row in rows if row["ms"] is not None]
    told: Callable[[str], str] = lambda why: str(sum(row["why"] == why for row in rows))  # noqa: E731
    quick = [f"{percentile(times, at):.0f}" if times else "–" for at in (0.5, 0.95)]
    return [name, share(row["right"] for row in rows), told("refused"), told("answered"), *quick]


def _short(value: float) -> str:
    return f"{value:.2f}".removeprefix("0") if value < 1 else "1.00"
