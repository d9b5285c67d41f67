"""The tables of a comparison, as text in cells, whatever they are written to."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from evals.compare import ComparedGroup
from evals.statistics import Difference, Interval, percentile
from evals.summary import LATENCY, Measured, distances, latency, rank_groups, rank_names

METRICS = {  # those of the library study, in its order, and full support
    "precision@3": "Precision@3",
    "precision@5": "Precision@5",
    "precision@10": "Precision@10",
    "recall@5": "Recall@5",
    "recall@10": "Recall@10",
    "mrr": "MRR",
    "ndcg@5": "nDCG@5",
    "full_support@10": "Full support@10",
}
NOTHING = "–"
P = "p"
SMALLEST_P = 0.001


@dataclass(frozen=True)
class ReportTable:
    """Hold the cells of a table; the first `labels` columns are names, the others figures."""

    headers: list[str]
    rows: list[list[str]]
    labels: int = 1


def metric_table(part: ComparedGroup) -> ReportTable:
    """Return a metric per line: each pipeline, and its difference from the first one."""
    return ReportTable(["metric", *_headers(part)], _metric_rows(part))


def short_table(part: ComparedGroup) -> ReportTable:
    """Return the same for a narrow place: no intervals, and with many pipelines no p."""
    table = metric_table(part)
    many = len(part.differences) > 1
    kept = [i for i, header in enumerate(table.headers) if not (many and header == P)]
    rows = [[row[i] if i == 0 else row[i].split(" (")[0] for i in kept] for row in table.rows]
    return ReportTable([table.headers[i] for i in kept], rows)


def group_table(parts: Sequence[ComparedGroup], kind: str) -> ReportTable:
    """Return the same table for every group of queries, below one another."""
    rows = [[f"{part.name} (n = {part.n})", *row] for part in parts for row in _metric_rows(part)]
    return ReportTable([kind, "metric", *_headers(parts[0])], rows, labels=2)


def _headers(part: ComparedGroup) -> list[str]:
    baseline = part.pipelines[0].pipeline
    headers = [one.pipeline for one in part.pipelines]
    for name in part.differences:
        headers += [f"{name} − {baseline}", P]
    return headers


def _metric_rows(part: ComparedGroup) -> list[list[str]]:
    rows = []
    for metric, title in METRICS.items():
        row = [title]
        for one, bound in zip(part.pipelines, part.intervals, strict=True):
            row.append(f"{one.mean(metric):.3f}{_interval(bound[metric])}")
        for found in part.differences.values():
            row += _difference(found[metric], 3)
        rows.append(row)
    return [*rows, *_latency_rows(part)]


def _latency_rows(part: ComparedGroup) -> list[list[str]]:
    mean = ["latency, mean (ms)"]
    for one in part.pipelines:
        times = [run.ms for run in one.runs if run.ms is not None]
        mean.append(f"{statistics.fmean(times):.1f}" if times else NOTHING)
    for found in part.differences.values():
        mean += _difference(found[LATENCY], 1) if LATENCY in found else [NOTHING, NOTHING]
    rows = [mean]
    for share in ("p50", "p95"):
        values = [latency(one.runs)[share] for one in part.pipelines]
        row = [f"latency, {share} (ms)", *(NOTHING if v is None else f"{v:.1f}" for v in values)]
        for value in values[1:]:
            both = value is not None and values[0] is not None
            row += [f"{(value or 0) - (values[0] or 0):+.1f}" if both else NOTHING, NOTHING]
        rows.append(row)
    return rows


def _difference(found: Difference, digits: int) -> list[str]:
    p = f"< {SMALLEST_P}" if found.p < SMALLEST_P else f"{found.p:.3f}"
    bound = _interval(found.interval, digits, signed=True)
    return [f"{found.mean:+.{digits}f}{bound}", p]


def _interval(interval: Interval, digits: int = 3, *, signed: bool = False) -> str:
    if interval is None:
        return ""
    sign = "+" if signed else ""
    return " (" + ", ".join(f"{end:{sign}.{digits}f}" for end in interval) + ")"


def rank_table(pipelines: Sequence[Measured]) -> ReportTable:
    """Return how many queries have their first relevant document at each rank."""
    rows = []
    for one in pipelines:
        counts = rank_groups(one.runs)
        rows.append([one.pipeline, *(str(counts[name]) for name in rank_names())])
    return ReportTable(["rank of the first relevant document", *rank_names()], rows)


def distance_table(pipelines: Sequence[Measured]) -> ReportTable | None:
    """Return the quartiles of the best hit's distance; None when there are no distances."""
    rows = []
    for one in pipelines:
        kinds = zip(("relevant", "not relevant"), distances(one.runs), strict=True)
        for kind, values in kinds:
            if values:
                quartiles = [f"{percentile(values, share):.3f}" for share in (0.25, 0.5, 0.75)]
                rows.append([one.pipeline, kind, str(len(values)), *quartiles])
    headers = ["pipeline", "best hit is", "queries", "25 %", "median", "75 %"]
    return ReportTable(headers, rows, labels=2) if rows else None
