"""The charts of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evals.compare import Part, Section
from evals.statistics import Interval
from evals.summary import distances, rank_groups, rank_names
from evals.svg import COLOURS, INK, draw, drawable, label
from evals.tables import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


def _bar(part: Part, place: int, metric: str) -> Bar:
    one = part.pipelines[place]
    return one.mean(metric), part.intervals[place][metric]


def _group_bars(parts: Sequence[Part]) -> list[tuple[str, list[Bar]]]:
    return [
        (
            f"{label(part.name, number)} (n = {part.n})",
            [_bar(part, place, GROUP_METRIC) for place in range(len(part.pipelines))],
        )
        for number, part in enumerate(parts, start=1)
    ]


def _numbered(parts: Sequence[Part]) -> str:
    hidden = any(not drawable(part.name) for part in parts)
    return "; numbers stand for names, in the order of the table" if hidden else ""


def _bars(
    name: str, title: str, metric: str, part: Part, groups: list[tuple[str, list[Bar]]]
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


def _rank_chart(part: Part) -> Chart:
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


def _distance_chart(part: Part) -> Chart | None:
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
