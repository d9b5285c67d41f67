"""The tables and charts of a comparison, whatever they are written to."""

from __future__ import annotations

import io
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from display.html import COLOURS
from evals.compare import ComparedGroup, Section
from evals.summary import (
    LATENCY,
    Difference,
    Interval,
    Measured,
    distances,
    latency,
    percentile,
    rank_groups,
    rank_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
SMALLEST_P = 0.001  # below it a table says "< 0.001"


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


INK = "#1b1f24"  # lines and letters; inside a page they take the colour of its text
PAPER = "#ffffff"
FONT = "DejaVu Sans"  # comes with matplotlib
SALT = "carrel"
LABEL = 32  # characters of a name in a chart, chosen

_STYLE = {
    "font.family": [FONT],
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "text.parse_math": False,  # a "$" in a name is a dollar
    "svg.fonttype": "path",
    "svg.hashsalt": SALT,
}
_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))


def draw(paint: Callable[[list[Axes]], None], size: tuple[float, float], columns: int = 1) -> str:
    """Return the SVG of axes side by side, painted by `paint`; `size` is in inches."""
    from matplotlib import style
    from matplotlib.figure import Figure

    with style.context(["default", _STYLE]):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(1, columns, squeeze=False, sharex=True, sharey=True)[0]
        paint(list(axes))
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata=_NO_METADATA)
    return written.getvalue()


def standalone(svg: str, title: str) -> str:
    """Return an SVG file on white paper."""
    paper = f'<rect width="100%" height="100%" fill="{PAPER}"/>'
    return f'<?xml version="1.0" encoding="utf-8"?>\n{_opened(svg, title, paper)}'


def inline(svg: str, title: str, name: str) -> str:
    """Return an element for an HTML page, in the colour of its text; `name` keeps ids apart."""
    element = _opened(svg, title, "")
    element = element.replace(INK, "currentColor").replace("xlink:href", "href")
    element = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", element)
    element = re.sub(r'\bid="', f'id="{name}-', element)
    return re.sub(r'(href="#|url\(#)', rf"\1{name}-", element)


def _opened(svg: str, title: str, paper: str) -> str:
    """Put the title, which is read aloud, and the paper behind the opening tag; name no DTD."""
    svg = svg[svg.index("<svg") :].strip() + "\n"
    start = svg.index(">")
    return f'{svg[:start]} role="img"><title>{escape(title)}</title>{paper}{svg[start + 1 :]}'


def drawable(text: str) -> bool:
    """Tell whether the font has all letters of a text."""
    from matplotlib.font_manager import findfont, get_font

    font = get_font(findfont(FONT))
    return all(font.get_char_index(ord(character)) for character in text)


def label(text: str, place: int) -> str:
    """Return a name as a chart shows it: short, or its number when the font lacks its letters."""
    if not drawable(text):
        return f"no. {place}"
    return text if len(text) <= LABEL else text[: LABEL - 1] + "…"


GROUP_METRIC = "ndcg@5"
WIDTH = 7.2  # inches, as all sizes here
LINE = 0.2  # height of a bar, chosen
BINS = 20  # of a histogram, chosen


@dataclass(frozen=True)
class Chart:
    """Hold a drawing with the words that stand for it; `name` is unique within a section."""

    name: str
    title: str
    svg: str


def charts(section: Section) -> list[Chart]:
    """Return the charts of one section; those without anything to show are left out."""
    overall = section.whole
    metrics = [
        (title, [_bar(overall, place, metric) for place in range(len(overall.pipelines))])
        for metric, title in METRICS.items()
    ]
    drawn = [_bars("metrics", f"Metrics on {overall.name}", "mean", overall, metrics)]
    for name, kind, parts in (
        ("types", "query type", section.by_type),
        ("languages", "language", section.by_language),
    ):
        if parts:
            metric = METRICS[GROUP_METRIC]
            title = f"{metric} by {kind} on {overall.name}{_numbered(parts)}"
            drawn.append(_bars(name, title, metric, overall, _group_bars(parts)))
    drawn.append(_rank_chart(overall))
    distance = _distance_chart(overall)
    return [*drawn, distance] if distance else drawn


Bar = tuple[float, Interval]


def _bar(part: ComparedGroup, place: int, metric: str) -> Bar:
    one = part.pipelines[place]
    return one.mean(metric), part.intervals[place][metric]


def _group_bars(parts: Sequence[ComparedGroup]) -> list[tuple[str, list[Bar]]]:
    return [
        (
            f"{label(part.name, number)} (n = {part.n})",
            [_bar(part, place, GROUP_METRIC) for place in range(len(part.pipelines))],
        )
        for number, part in enumerate(parts, start=1)
    ]


def _numbered(parts: Sequence[ComparedGroup]) -> str:
    hidden = any(not drawable(part.name) for part in parts)
    return "; numbers stand for names, in the order of the table" if hidden else ""


def _bars(
    name: str, title: str, metric: str, part: ComparedGroup, groups: list[tuple[str, list[Bar]]]
) -> Chart:
    pipelines = [one.pipeline for one in part.pipelines]
    step = 0.8 / len(pipelines)

    def paint(axes: list[Axes]) -> None:
        for place, pipeline in enumerate(pipelines):
            bars = [group[1][place] for group in groups]
            lines = [row - 0.4 + step * (place + 0.5) for row in range(len(groups))]
            means = [mean for mean, _ in bars]
            axes[0].barh(
                lines, means, step * 0.9, color=COLOURS[place % len(COLOURS)], label=pipeline
            )
            for line, (mean, interval) in zip(lines, bars, strict=True):
                if interval:
                    axes[0].plot(interval, [line, line], color=INK, linewidth=1)
                end = max(mean, interval[1] if interval else 0)
                axes[0].text(end + 0.01, line, f"{mean:.2f}", va="center", fontsize=7)
        axes[0].set_yticks(range(len(groups)), [group[0] for group in groups])
        axes[0].set_ylim(len(groups) - 0.5, -0.5)
        axes[0].set_xlim(0, 1.08)
        axes[0].set_xlabel(metric)
        axes[0].tick_params(axis="y", length=0)
        axes[0].figure.legend(loc="outside upper left", ncols=len(pipelines))

    height = 0.9 + LINE * len(groups) * (len(pipelines) + 0.6)
    return Chart(name, title, draw(paint, (WIDTH, height)))


def _rank_chart(part: ComparedGroup) -> Chart:
    names = rank_names()
    step = 0.8 / len(part.pipelines)

    def paint(axes: list[Axes]) -> None:
        for place, one in enumerate(part.pipelines):
            counts = rank_groups(one.runs)
            shares = [counts[name] / len(one.runs) for name in names]
            columns = [x - 0.4 + step * (place + 0.5) for x in range(len(names))]
            drawn = axes[0].bar(
                columns, shares, step * 0.9, color=COLOURS[place % len(COLOURS)], label=one.pipeline
            )
            axes[0].bar_label(drawn, [str(counts[name]) for name in names], fontsize=7)
        axes[0].set_xticks(range(len(names)), names)
        axes[0].set_xlabel("rank of the first relevant document")
        axes[0].set_ylabel("share of the queries")
        axes[0].figure.legend(loc="outside upper left", ncols=len(part.pipelines))

    title = f"Rank of the first relevant document on {part.name}"
    return Chart("ranks", title, draw(paint, (WIDTH, 3.0)))


def _distance_chart(part: ComparedGroup) -> Chart | None:
    shown = [(one.pipeline, *distances(one.runs)) for one in part.pipelines]
    shown = [one for one in shown if one[1] or one[2]]
    if not shown:
        return None
    everything = [value for one in shown for values in one[1:] for value in values]
    low, high = min(everything), max(everything)
    span = (low, high) if high > low else (low - 0.05, high + 0.05)

    def paint(axes: list[Axes]) -> None:
        for axis, (pipeline, relevant, other) in zip(axes, shown, strict=True):
            kinds = ((relevant, "relevant", COLOURS[0]), (other, "not relevant", COLOURS[1]))
            for values, kind, colour in kinds:
                legend = f"{kind} (n = {len(values)})"
                axis.hist(values, bins=BINS, range=span, color=colour, alpha=0.65, label=legend)
            axis.set_title(pipeline)
            axis.set_xlabel("distance of the best hit, 1 − cosine")
            axis.legend(fontsize=7)
        axes[0].set_ylabel("queries")

    title = f"Distance of the best hit on {part.name}, by whether it is relevant"
    return Chart("distances", title, draw(paint, (WIDTH, 3.0), columns=len(shown)))
