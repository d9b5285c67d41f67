"""`carrel quality`, how good the data of a collection is; `carrel report`, what it is like."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from cli.arguments import (
    DEFAULT_COLLECTION,
    DEFAULT_TENANT,
    DEFAULT_USER,
    CollectionName,
    Data,
    Json,
    Set,
    Tenant,
    Yes,
    path_option,
)
from cli.options import CallerOptions, opened, settings_from, storables, with_options, working
from cli.server.access import record
from cli.server.running import placed, shown
from cli.terminal.output import agreed, asks, checked_out, print_json, stdout, write_files
from core.distribution import require_extra
from core.errors import CallerError
from core.question import joined_names
from ingest.quality.report import quality_report
from ingest.quality.texts import QualityFinding, QualityReport, Spread
from serve.study.page import study_page
from serve.study.study import Study, advised_profile, advised_study

if TYPE_CHECKING:
    from app.session import Session
    from stores.sqlite.catalogue import Collection

BAR = 24  # signs of the longest bar
ROWS = 12  # bars of a histogram in the terminal
LEVELS = {"left out": "yellow", "problem": "red", "note": "cyan"}


def quality(
    collection: CollectionName = DEFAULT_COLLECTION,
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
        found = session.catalogue.collection(tenant, collection)
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


@with_options
def report(
    collections: Annotated[
        list[str], typer.Argument(help="Collections of documents.", show_default=False)
    ],
    *,
    options: CallerOptions,
    out: Annotated[
        Path | None, path_option("--out", "The page, an .html file [default: report.html].")
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Set what is advised; chunks at the next ingest.")
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Compare what the caller sees of collections in ten figures, and advise their settings."""
    target = out or (None if as_json else placed(Path("report.html")))
    if target is not None:
        checked_out(target, (".html",))
    if apply and options.user != DEFAULT_USER:
        rule = "--apply is for the operator, since settings are those of all readers"
        raise CallerError(rule, hint="leave out --user")
    if apply and not yes and not asks():
        rule = "settings are not changed without a terminal to ask on"
        raise CallerError(rule, hint="add -y to change them without being asked")
    names = joined_names(storables(collections))
    with opened(options.settings()) as session:
        named = session.catalogue.collections_named(options.auth, names)
        found = [advised_study(session, options.auth, one) for one in named]
        if target is not None:
            write_files({target: study_page(found)})
        if not as_json:
            _print(found, target)
        advised = [pair for pair in zip(named, found, strict=True) if pair[1].advice]
        if apply and advised and not yes and not agreed("Change these settings?"):
            raise typer.Exit(1)
        if apply:
            with working(session, f"settings of {names}", quiet=as_json):
                for collection, one in advised:
                    _apply(session, collection, one)
    if as_json:
        changed = [one.collection for _, one in advised if apply]
        print_json({"collections": [one.model_dump() for one in found], "applied": changed})


def _print(found: Sequence[Study], target: Path | None) -> None:
    out = stdout()
    for one in found:
        counts = f"{one.documents} documents, {one.passages} passages, {one.code_share:.0%} code"
        out.print(f"[bold]{escape(one.collection)}[/bold]: {counts}")
        for part in one.advice:
            out.print(escape(f"  {part.setting}: {part.now} → {part.advised} ({part.why})"))
        if not one.advice:
            out.print("  the settings are those that its figures advise")
    if target is not None:
        out.print(f"[dim]written to {escape(shown(target))}[/dim]")


def _apply(session: Session, collection: Collection, one: Study) -> None:
    profile = advised_profile(collection.profile, one.advice)
    session.intake.open_collection(collection.tenant, collection.name, profile)
    given = {part.setting: part.advised for part in one.advice}
    about = {"collection": collection.name, **given}
    record(session.accounts, session.settings, "settings", collection.tenant, **about)
