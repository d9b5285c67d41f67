"""`carrel quality`: how good the data of a collection is, and what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.markup import escape

from cli.arguments import (
    DEFAULT_TENANT,
    DEFAULT_USER,
    CollectionName,
    Data,
    Json,
    Set,
    Tenant,
    path_option,
)
from cli.options import caller, collection_of, opened, settings_from
from cli.server.running import shown
from cli.terminal.output import checked_out, print_json, stdout, write_files
from core.distribution import require_extra
from ingest.quality.report import quality_report
from ingest.quality.texts import QualityFinding, QualityReport, Spread

BAR = 24  # signs of the longest bar
ROWS = 12  # bars of a histogram in the terminal
LEVELS = {"left out": "yellow", "problem": "red", "note": "cyan"}


def quality(
    collection: CollectionName = None,
    tenant: Tenant = DEFAULT_TENANT,
    out: Annotated[
        Path | None, path_option("--out", "Write the report to an .html or .json file.")
    ] = None,
    data: Data = None,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Report what is missing, repeated or left out in a collection, and damaged texts."""
    if out is not None:
        checked_out(out, (".html", ".json"))
        if out.suffix.lower() == ".html":
            require_extra("eval", "a page with charts", otherwise="write .json")
    with opened(settings_from(data, changes)) as session:
        found = collection_of(session, caller(tenant, DEFAULT_USER, None), collection)
        report = quality_report(session.maintenance, found)
    if out is not None:
        from evals.report import quality_page  # late: it draws with matplotlib

        is_page = out.suffix.lower() == ".html"
        text = quality_page(report) if is_page else report.model_dump_json(indent=2)
        write_files({out: f"{text.rstrip()}\n"})
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        print_report(report)
        if out is not None:
            stdout().print(f"[dim]written to {escape(shown(out))}[/dim]")


def print_report(report: QualityReport) -> None:
    """Print the report: what there is, what was found, how long things are."""
    out = stdout()
    out.print(
        f"[bold]{escape(report.collection)}[/bold]: {report.files} files →"
        f" {report.records} records, {report.texts} texts ({report.linked} linked to records),"
        f" {report.chunks} chunks"
    )
    for name, counts in (("chunks", report.kinds), ("languages", report.languages)):
        listed = ", ".join(f"{count} {escape(kind)}" for kind, count in counts.items())
        out.print(f"[dim]{name}: {listed or 'none'}[/dim]")
    for finding in report.findings:
        _print_finding(finding)
    if not report.findings:
        out.print("\n[green]nothing unusual was found[/green]")
    for title, spread in (
        ("annotations", report.annotation_lengths),
        ("chunks", report.chunk_lengths),
        ("sentences", report.sentence_lengths),
    ):
        _print_spread(title, spread)
    out.print(f"[dim]{report.seconds:.1f} s[/dim]")


def _print_finding(finding: QualityFinding) -> None:
    out = stdout()
    colour = LEVELS[finding.level]
    out.print(
        f"\n[{colour}]{finding.level}[/{colour}] {escape(finding.what)}:"
        f" [bold]{finding.count}[/bold] [dim]of {finding.of} ({finding.share:.1%})[/dim]"
    )
    for example in finding.examples:
        out.print(f"    {escape(' '.join(example.split()))}")
    more = finding.count - len(finding.examples)
    if more > 0:
        out.print(f"    [dim]… and {more} more[/dim]")
    out.print(f"    [dim]→ {escape(finding.advice)}[/dim]")


def _print_spread(title: str, spread: Spread) -> None:
    if not spread.count:
        return
    out = stdout()
    out.print(
        f"\n[bold]{title}[/bold], characters: n = {spread.count}, {spread.least} to {spread.most},"
        f" median {spread.median}, mean {spread.mean:g}"
    )
    for first, last, count in joined_bars(spread.bars):
        filled = round(BAR * count / max(bar[2] for bar in joined_bars(spread.bars)))
        out.print(f"  {first:>5}–{last - 1:<6} {'█' * filled:<{BAR}} {count}")


def joined_bars(bars: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return at most `ROWS` bars from the first to the last that has anything."""
    filled = [place for place, bar in enumerate(bars) if bar[2]]
    shown = bars[filled[0] : filled[-1] + 1] if filled else []
    step = -(-len(shown) // ROWS) or 1
    groups = [shown[start : start + step] for start in range(0, len(shown), step)]
    return [(group[0][0], group[-1][1], sum(bar[2] for bar in group)) for group in groups]
