"""The tables of the report on questions that need several searches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.multihop_measure import GAINS, SHOWN, Found
from benchmarks.multihop_overhead import TURNS
from evals.answers import METRICS as ANSWER_METRICS
from evals.summary import LATENCY

NOTHING = "–"
TITLES = {
    "answered": "answered",
    "refused_rightly": "refused rightly",
    "any_gold_cited": "any gold cited",
    "all_gold_cited": "all gold cited",
    "citation_precision": "citation precision",
    "answer_contained": "answer contained",
}
PAIRED = ("any_gold_cited", "all_gold_cited", "citation_precision", "answer_contained")
assert set(TITLES) <= set(ANSWER_METRICS)

Sets = dict[str, Found]


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, labels: int) -> str:
    """Return a Markdown table whose first columns are names and the others figures."""
    rule = ["---" if place < labels else "---:" for place in range(len(headers))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headers, rule, *rows))


COMPARED = {
    "decomposed": "more than one part",
    "same_parts": "same number of parts",
    "parts_off": "parts off, mean",
    "same_shape": "same shape",
    "first_leads": "all wait for the first",
    "gold_first_leads": "in the gold plan",
    "surely_plain": "surely plain",
}


def decompositions_table(sets: dict[str, Found]) -> str:
    """Return how plans agree with the gold decompositions, by set and by type."""
    rows: list[list[str]] = []
    for name, found in sets.items():
        whole = json.loads(found["text"])
        kinds = {"all": whole, **whole.get("by_type", {})}
        rows += [
            [name, kind, str(one["n"]), *(_figure(one.get(key)) for key in COMPARED)]
            for kind, one in kinds.items()
        ]
    return table(["data set", "type", "n", *COMPARED.values()], rows, labels=2)


def _figure(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"


def gap(found: dict[str, Any] | None) -> str:
    """Return a paired difference with its interval; bold where p is below 0.05."""
    if found is None:
        return NOTHING
    bounds = found["ci"]
    interval = f" ({bounds[0]:+.3f}, {bounds[1]:+.3f})" if bounds else ""
    said = f"{found['difference']:+.3f}{interval}"
    return f"**{said}**" if found["p"] < 0.05 else said


def share(value: float | None) -> str:
    """Return a mean of 0 to 1, or a dash where no question has one."""
    return NOTHING if value is None else f"{value:.3f}"


def ranking_table(sets: Sets) -> str:
    """Return the metrics of each pipeline, and the gain of agentic over each."""
    rows = []
    for name, found in sets.items():
        for pipeline, metrics in found["metrics"].items():
            times = found["latency_ms"][pipeline]["p50"]
            gaps = found["differences"].get(pipeline)
            rows.append(
                [name, str(found["n"]), pipeline]
                + [share(metrics[metric]) for metric in SHOWN]
                + [gap(gaps[metric]) if gaps else NOTHING for metric in GAINS]
                + [NOTHING if times is None else f"{times:.0f}"]
            )
    gains = [f"agentic − it, {metric}" for metric in GAINS]
    return table(["data set", "n", "pipeline", *SHOWN, *gains, "p50 ms"], rows, labels=3)


def kinds_table(sets: Sets) -> str:
    """Return the share of questions called multi, and planned by threshold."""
    thresholds = list(next(iter(sets.values()))["planned"])
    rows = [
        [name, str(found["n"]), share(found["multi"])]
        + [share(found["planned"][threshold]) for threshold in thresholds]
        + [counts(found["by_type"]) if len(found["by_type"]) > 1 else ""]
        for name, found in sets.items()
    ]
    planned = [f"planned at {one}" for one in thresholds]
    headers = ["data set", "n", "multi", *planned, "multi by type"]
    return table(headers, rows, labels=1)


def answer_tables(sets: Sets) -> Iterator[str]:
    """Yield the answers of each pipeline, the same by type, and what they cost."""
    whole, by_type, cost = [], [], []
    for name, found in sets.items():
        for pipeline, one in found["pipelines"].items():
            whole.append([name, pipeline, str(one["n"]), *_answer_cells(one)])
            by_type += [
                [name, kind, pipeline, str(part["n"]), *_answer_cells(part)]
                for kind, part in one.get("by_type", {}).items()
            ]
            cost.append([name, pipeline, *_cost_cells(one)])
    titles = list(TITLES.values())
    yield table(["data set", "pipeline", "n", *titles], whole, labels=2)
    yield "### By type"
    yield table(
        ["data set", "type", "pipeline", "n", *titles], sorted(by_type, key=_order), labels=3
    )
    yield "### Time and cost of an answer"
    headers = ["p50 ms", "p95 ms", "tool calls", "p95", "tokens", "p95", "operations p50", "p95"]
    yield table(["data set", "pipeline", *headers, "cost", "degraded"], cost, labels=2)


def _order(row: Sequence[str]) -> tuple[str, str]:
    return row[0], row[1]


def _answer_cells(part: Found) -> list[str]:
    cells = []
    for metric in TITLES:
        value, count = part["metrics"][metric], part["counts"][metric]
        fewer = f" ({count})" if value is not None and count < part["n"] else ""
        cells.append(share(value) + fewer)
    return cells


def _cost_cells(one: Found) -> list[str]:
    times, spent = one[LATENCY], one["spent"]
    cells = [NOTHING if times[key] is None else f"{times[key]:.0f}" for key in ("p50", "p95")]
    for name, keys in (
        ("tool_calls", ("mean", "p95")),
        ("tokens", ("mean", "p95")),
        ("operations", ("p50", "p95")),
    ):
        digits = 0 if name == "tokens" else 1
        cells += [f"{spent[name][key]:.{digits}f}" if spent[name] else NOTHING for key in keys]
    cost = spent["cost"]
    return [*cells, f"{cost['mean']:.4f}" if cost else NOTHING, str(one["degraded"])]


def answer_differences(sets: Sets) -> str:
    """Return the paired differences between the pipelines that answer."""
    rows = [
        [name, pair, *(gap(found["differences"][pair].get(metric)) for metric in PAIRED)]
        for name, found in sets.items()
        for pair in found["differences"]
    ]
    titles = [TITLES[metric] for metric in PAIRED]
    return "### Differences\n\n" + table(["data set", "difference", *titles], rows, labels=2)


def overhead_tables(sets: Sets) -> Iterator[str]:
    """Yield the overhead per operation, and how the runs ended and turned."""
    measured = {name: found for name, found in sets.items() if found["n"]}
    spans = ("overhead_ms_per_operation", "with_judging_ms_per_operation", "wall_ms")
    rows = [
        [name, f"{found['n']} ({found['with_plan']})"]
        + [f"{found['operations'][key]:.0f}" for key in ("p50", "p95")]
        + [f"{found[span][key]:.1f}" for span in spans for key in ("p50", "p95")]
        for name, found in measured.items()
    ]
    headers = ["operations p50", "p95", "overhead ms p50", "p95", "with judging ms p50", "p95"]
    yield table(["data set", "n (with a plan)", *headers, "run ms p50", "p95"], rows, labels=1)
    yield "### How runs end and turn"
    rows = [
        [name, str(found["n"]), counts(found["stop_reasons"]), counts(found["decisions"])]
        + [str(found["runs_that"][word]) for word in TURNS]
        for name, found in measured.items()
    ]
    headers = ["data set", "n", "ended", "decisions of the stop condition"]
    yield table([*headers, "runs with a backtrack", "with a replan"], rows, labels=4)
    yield "### Where the time goes"
    yield "Mean milliseconds of a run by node; those of steps side by side add up."
    rows = [[name, counts(found["mean_ms_of_nodes"])] for name, found in measured.items()]
    yield table(["data set", "ms"], rows, labels=2)


def counts(found: dict[str, Any]) -> str:
    """Return names with their numbers."""
    return ", ".join(f"{name} {count}" for name, count in found.items())
