"""The report on the quality of a collection, as the blocks that pages are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evals.charts import COLOURS, WIDTH, Chart, draw
from evals.report import Block, Drawing, Heading, Text
from evals.report_html import html_report
from evals.tables import ReportTable
from ingest.quality.types import QualityFinding, QualityReport, Spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 2.4  # inches
TITLES = {
    "left out": "Left out of searches",
    "problem": "Problems",
    "note": "Worth a look",
}


def quality_page(report: QualityReport) -> str:
    """Return the report as a page."""
    return html_report(_blocks(report))


def _blocks(report: QualityReport) -> list[Block]:
    blocks: list[Block] = [
        Heading(f"Quality of {report.collection}", 1),
        Text(
            f"Tenant {report.tenant}, profile {report.profile}: {report.files} files with"
            f" {report.records} records and {report.texts} texts, {report.linked} of them linked"
            f" to records, in {report.chunks} chunks."
        ),
        ReportTable(["chunks of kind", "n"], [[kind, str(n)] for kind, n in report.kinds.items()]),
        ReportTable(
            ["language", "documents"], [[one, str(n)] for one, n in report.languages.items()]
        ),
    ]
    for level, title in TITLES.items():
        found = [finding for finding in report.findings if finding.level == level]
        if found:
            blocks += [Heading(title, 2), _shares(level, found), *_details(found)]
    for name, title, spread in (
        ("annotations", "Lengths of annotations", report.annotation_lengths),
        ("chunks", "Lengths of chunks", report.chunk_lengths),
        ("sentences", "Lengths of sentences", report.sentence_lengths),
    ):
        if spread.count:
            blocks += [
                Heading(title, 2),
                Text(_spread_text(spread)),
                _histogram(name, title, spread),
            ]
    return blocks


def _details(found: list[QualityFinding]) -> list[Block]:
    rows = [
        [
            finding.what,
            " · ".join(" ".join(example.split()) for example in finding.examples),
            finding.advice,
            f"{finding.count} of {finding.of}",
        ]
        for finding in found
    ]
    return [ReportTable(["found", "examples", "what to do", "n"], rows, labels=3)]


def _shares(level: str, found: list[QualityFinding]) -> Drawing:
    def paint(axes: list[Axes]) -> None:
        lines = list(range(len(found)))
        bars = axes[0].barh(lines, [one.share for one in found], 0.7, color=COLOURS[0])
        axes[0].bar_label(bars, [f" {one.count}" for one in found], fontsize=7)
        axes[0].set_yticks(lines, [one.what for one in found])
        axes[0].set_ylim(len(found) - 0.5, -0.5)
        axes[0].set_xlim(0, 1.08)
        axes[0].set_xlabel("share")
        axes[0].tick_params(axis="y", length=0)

    name = level.replace(" ", "-")
    chart = Chart(name, TITLES[level], draw(paint, (WIDTH, 0.7 + 0.24 * len(found))))
    return Drawing(name, chart)


def _histogram(name: str, title: str, spread: Spread) -> Drawing:
    filled = [place for place, bar in enumerate(spread.bars) if bar[2]]
    bars = spread.bars[: filled[-1] + 1]
    step = spread.bars[0][1]

    def paint(axes: list[Axes]) -> None:
        left = [bar[0] for bar in bars]
        axes[0].bar(left, [bar[2] for bar in bars], step * 0.92, align="edge", color=COLOURS[0])
        axes[0].axvline(spread.median, color=COLOURS[1], label=f"median {spread.median}")
        axes[0].set_xlabel("characters; the last bar has all that is longer")
        axes[0].set_ylabel("n")
        axes[0].legend(fontsize=7)

    return Drawing(name, Chart(name, title, draw(paint, (WIDTH, HEIGHT))))


def _spread_text(spread: Spread) -> str:
    return (
        f"n = {spread.count}, from {spread.least} to {spread.most} characters, median"
        f" {spread.median}, mean {spread.mean:g}."
    )
