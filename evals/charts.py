"""The charts of a comparison."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from evals.compare import ComparedGroup, Section
from evals.statistics import Interval
from evals.summary import distances, rank_groups, rank_names
from evals.tables import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


INK = "#1b1f24"  # lines and letters; inside a page they take the colour of its text
PAPER = "#ffffff"
FONT = "DejaVu Sans"  # comes with matplotlib
SALT = "carrel"
LABEL = 32
# Told apart with every kind of colour vision (Okabe and Ito 2008), and seen on black and white.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9")

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
LINE = 0.2
BINS = 20


@dataclass(frozen=True)
class Chart:
    """Hold a drawing with the words that stand for it; `name` is unique within a section."""

    name: str
    title: str
    svg: str


def charts(section: Section) -> list[Chart]:
    """Return the charts of one section; those without anything to show are left out."""
    whole = section.whole
    metrics = [
        (title, [_bar(whole, place, metric) for place in range(len(whole.pipelines))])
        for metric, title in METRICS.items()
    ]
    drawn = [_bars("metrics", f"Metrics on {whole.name}", "mean", whole, metrics)]
    for name, kind, parts in (
        ("types", "query type", section.by_type),
        ("languages", "language", section.by_language),
    ):
        if parts:
            metric = METRICS[GROUP_METRIC]
            title = f"{metric} by {kind} on {whole.name}{_numbered(parts)}"
            drawn.append(_bars(name, title, metric, whole, _group_bars(parts)))
    drawn.append(_rank_chart(whole))
    distance = _distance_chart(whole)
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
                said = f"{kind} (n = {len(values)})"
                axis.hist(values, bins=BINS, range=span, color=colour, alpha=0.65, label=said)
            axis.set_title(pipeline)
            axis.set_xlabel("distance of the best hit, 1 − cosine")
            axis.legend(fontsize=7)
        axes[0].set_ylabel("queries")

    title = f"Distance of the best hit on {part.name}, by whether it is relevant"
    return Chart("distances", title, draw(paint, (WIDTH, 3.0), columns=len(shown)))
