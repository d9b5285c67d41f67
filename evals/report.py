"""Reports, of comparisons, trajectories and the quality of a collection, as Markdown and HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from core.errors import shorten
from core.settings import Settings
from display.html import COLOURS, Markup, bar, element, escaped, folded, joined, line, table
from display.runs import run_view, steps_view, view_page
from evals.charts import (
    WIDTH,
    Chart,
    ReportTable,
    charts,
    distance_table,
    draw,
    group_table,
    inline,
    metric_table,
    rank_table,
    standalone,
)
from evals.compare import Section
from evals.runner import ANSWERING
from evals.summary import CONFIDENCE
from evals.trajectories import TrajectoryRuns
from ingest.quality.texts import QualityFinding, QualityReport, Spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Heading:
    """Hold a heading; the report's own title has level 1."""

    text: str
    level: int


@dataclass(frozen=True)
class Text:
    """Hold one paragraph."""

    text: str


@dataclass(frozen=True)
class Drawing:
    """Hold a chart; `name` is unique in the report and fit for a file name."""

    name: str
    chart: Chart


Block = Heading | Text | ReportTable | Drawing


def report(sections: Sequence[Section], settings: Settings) -> list[Block]:
    """Return the blocks of the report on `sections`."""
    names = [one.pipeline for one in sections[0].whole.pipelines]
    blocks: list[Block] = [
        Heading(f"Retrieval compared: {', '.join(names)}", 1),
        Text(_method(names, settings)),
    ]
    for number, section in enumerate(sections, start=1):
        blocks += _section(section, number)
    return blocks


def _method(names: Sequence[str], settings: Settings) -> str:
    sentences = [
        "Figures are means over the queries that have a judged relevant document; precision,"
        " recall and reciprocal rank count grades of 1 and more, nDCG uses the grades as gains.",
        f"Parentheses hold {CONFIDENCE:.0%} bootstrap intervals"
        f" ({settings.evaluation.resamples} resamples).",
        f"Differences are from {names[0]}, query by query, with p of a two-sided paired"
        " randomisation test, not corrected for the number of comparisons.",
        f"Latency is of one search for {settings.retrieval.top_k} results on this machine.",
    ]
    if answering := [name for name in names if name in ANSWERING]:
        sentences.append(
            f"For {' and '.join(answering)} it is the whole answer, and the ranking is the evidence"
            " of the answer, which is short: recall far down the ranking says little."
        )
    return " ".join(sentences)


def _section(section: Section, number: int) -> list[Block]:
    overall = section.whole
    found: list[Block] = [
        Heading(f"{overall.name} (n = {overall.n})", 2),
        metric_table(overall),
    ]
    drawn = {chart.name: chart for chart in charts(section)}

    def show(name: str) -> None:
        if name in drawn:
            found.append(Drawing(f"{number}-{name}", drawn[name]))

    show("metrics")
    for title, kind, parts, name in (
        ("By query type", "type", section.by_type, "types"),
        ("By language", "language", section.by_language, "languages"),
    ):
        if parts:
            found += [Heading(title, 3), group_table(parts, kind)]
            show(name)
    found += [Heading("Rank of the first relevant document", 3), rank_table(overall.pipelines)]
    show("ranks")
    if table := distance_table(overall.pipelines):
        found += [Heading("Distance of the best hit", 3), table]
        show("distances")
    remarks = [*section.warnings, *section.notes]
    if remarks:
        found.append(Heading("Remarks", 3))
        found += [Text(remark) for remark in remarks]
    return found


def html_report(blocks: Sequence[Block]) -> str:
    """Return the page."""
    title = next(block.text for block in blocks if isinstance(block, Heading))
    return view_page(title, *map(_markup, blocks))


def _markup(block: Block) -> Markup:
    if isinstance(block, Drawing):
        # A letter in front, since a style sheet's name cannot start with a digit.
        drawn = inline(block.chart.svg, block.chart.title, f"c{block.name}")
        caption = element("figcaption", {}, escaped(block.chart.title))
        return element("figure", {}, Markup(drawn), caption)
    if isinstance(block, ReportTable):
        rows = [[*map(escaped, row)] for row in block.rows]
        return table(block.headers, rows, set(block.headers[block.labels :]), block.labels)
    tag = f"h{block.level}" if isinstance(block, Heading) else "p"
    return element(tag, {}, escaped(block.text))


_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
_LIST = re.compile(r"^([-+=]|\d{1,9}(?=[.)]))")  # what would begin a list or an underline


def markdown_report(blocks: Sequence[Block], stem: str) -> tuple[str, dict[str, str]]:
    """Return the text and its SVG files by name; `stem` is the report's name without suffix."""
    parts: list[str] = []
    files: dict[str, str] = {}
    for block in blocks:
        if isinstance(block, Drawing):
            name = f"{stem}-{block.name}.svg"
            files[name] = standalone(block.chart.svg, block.chart.title)
            title = markdown_text(block.chart.title)
            parts += [f"![{title}]({quote(name)})", f"*{title}*"]
        elif isinstance(block, Heading):
            parts.append(f"{'#' * block.level} {markdown_text(block.text)}")
        elif isinstance(block, Text):
            # An entity in front is nothing to a reader, and text that begins no list to a parser.
            parts.append(_LIST.sub(r"&#8203;\1", markdown_text(block.text)))
        else:
            parts.append(_markdown_table(block))
    return "\n\n".join(parts) + "\n", files


def _markdown_table(table: ReportTable) -> str:
    rule = ["---" if place < table.labels else "---:" for place in range(len(table.headers))]
    lines = [[markdown_text(cell) for cell in table.headers], rule]
    lines += [[markdown_text(cell) for cell in row] for row in table.rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def markdown_text(text: str) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    flat = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", flat)


HEIGHT = 2.4  # inches
TITLES = {
    "left out": "Left out of searches",
    "problem": "Problems",
    "note": "Worth a look",
}


def quality_page(report: QualityReport) -> str:
    """Return the report as a page."""
    return html_report(_quality_blocks(report))


def _quality_blocks(report: QualityReport) -> list[Block]:
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
                Text(
                    f"n = {spread.count}, from {spread.least} to {spread.most} characters, median"
                    f" {spread.median}, mean {spread.mean:g}."
                ),
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


NOTHING = "–"
FIGURES = {"value", "n"}
BAR_WIDTH = 300  # pixels of the longest bar, chosen


def trajectory_page(runs: TrajectoryRuns, result: dict[str, Any]) -> str:
    """Return the page; it needs no other file."""
    title = f"Trajectories: {result['passed']} of {result['n']} cases pass"
    body = joined(
        element("h1", {}, escaped(title)),
        _causes(result["causes"]),
        _measures(result),
        _cases(result["cases"]),
        element("h2", {}, escaped("Traces")),
        *_traces(runs, result["cases"]),
    )
    return view_page(title, body)


def _causes(causes: dict[str, int]) -> Markup:
    if not causes:
        return element("p", {}, escaped("No case fails."))
    most = max(causes.values())
    rows = [
        [
            escaped(name.replace("_", " ")),
            bar(n / most, str(n), BAR_WIDTH),
        ]
        for name, n in causes.items()
    ]
    title = element("h2", {}, escaped("Causes of failures"))
    return joined(title, table(["cause", "failures"], rows, FIGURES))


def _measures(result: dict[str, Any]) -> Markup:
    rows = [
        [
            escaped(name),
            escaped(NOTHING if value is None else f"{value:.3f}"),
            escaped(result["counts"].get(name, "")),
        ]
        for name, value in result["metrics"].items()
    ]
    title = element("h2", {}, escaped("Measures"))
    return joined(title, table(["measure", "value", "n"], rows, FIGURES))


def _cases(cases: list[dict[str, Any]]) -> Markup:
    rows = []
    for place, one in sorted(enumerate(cases), key=lambda item: item[1]["passed"]):
        step = one["step"]
        at = f"{step['number']} {step['node']}" if step else ""
        name = escaped(one["id"])
        linked = element("a", {"href": f"#case-{place}"}, name) if one["run_id"] else name
        cells = [line(one["question"]), one["stop_reason"], one["cause"] or "", at]
        passed = escaped("yes" if one["passed"] else "no")
        rows.append([linked, *map(escaped, cells), passed])
    title = element("h2", {}, escaped("Cases"))
    heads = ["case", "question", "ended", "cause", "step", "passed"]
    return joined(title, table(heads, rows, FIGURES))


def _traces(runs: TrajectoryRuns, cases: list[dict[str, Any]]) -> list[Markup]:
    found = []
    for place, (one, row) in enumerate(zip(runs.asked, cases, strict=True)):
        if one.run is None:
            continue
        why = row["shown_by"]
        cause = [element("p", {}, escaped(f"{row['cause']}: {why}"))] if why else []
        shown = joined(*cause, run_view(one.run).body, steps_view(one.run).body)
        title = f"{one.case.id}: {shorten(one.case.question, 100)}"
        part = folded(title, shown, opened=False)
        found.append(element("section", {"id": f"case-{place}"}, part))
    return found
