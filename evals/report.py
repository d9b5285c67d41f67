"""A comparison as a report: what it says and in which order, for Markdown and HTML alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.settings import Settings
from evals.charts import Chart, charts
from evals.compare import Section
from evals.searchers import WHOLE
from evals.statistics import CONFIDENCE
from evals.tables import ReportTable, distance_table, group_table, metric_table, rank_table


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
    said = [
        "Figures are means over the queries that have a judged relevant document; precision,"
        " recall and reciprocal rank count grades of 1 and more, nDCG uses the grades as gains.",
        f"Parentheses hold {CONFIDENCE:.0%} bootstrap intervals"
        f" ({settings.evaluation.resamples} resamples).",
        f"Differences are from {names[0]}, query by query, with p of a two-sided paired"
        " randomisation test, not corrected for the number of comparisons.",
        f"Latency is of one search for {settings.retrieval.top_k} results on this machine.",
    ]
    if whole := [name for name in names if name in WHOLE]:
        said.append(
            f"For {' and '.join(whole)} it is the whole answer, and the ranking is the evidence of"
            " the answer, which is short: recall far down the ranking says little."
        )
    return " ".join(said)


def _section(section: Section, number: int) -> list[Block]:
    whole = section.whole
    found: list[Block] = [
        Heading(f"{whole.name} (n = {whole.n})", 2),
        metric_table(whole),
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
    found += [Heading("Rank of the first relevant document", 3), rank_table(whole.pipelines)]
    show("ranks")
    if table := distance_table(whole.pipelines):
        found += [Heading("Distance of the best hit", 3), table]
        show("distances")
    remarks = [*section.warnings, *section.notes]
    if remarks:
        found.append(Heading("Remarks", 3))
        found += [Text(remark) for remark in remarks]
    return found
