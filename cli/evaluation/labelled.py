"""`carrel eval claims` and `questions`: rows of a file, whose verdict or pages are known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from cli.arguments import CollectionName, Json, Set, path_argument
from cli.evaluation.eval import table
from cli.options import CallerOptions, collection_of, opened, settings_from, with_options
from cli.terminal.output import print_json, stdout
from cli.terminal.progress import StageBars
from core.errors import CallerError, shorten
from evals.claims import JudgedClaim, judge_claims, read_claims, summarise_claims
from evals.questions import TOP, ask_pages, read_page_questions, summarise_pages
from retrievers.pipelines import PIPELINES

LONGEST = 1000  # characters of a claim that is shown; chosen, not measured


def claims(
    file: Annotated[Path, path_argument("FILE.jsonl", "Claims with their evidence and label.")],
    show: Annotated[
        bool, typer.Option("--show", help="Print the claims that are judged wrongly.")
    ] = False,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Judge labelled claims as those of an answer are: supported by their evidence, or not."""
    judged = judge_claims(read_claims(file), settings_from(None, changes))
    result = summarise_claims(judged)
    if as_json:
        print_json(result)
        return
    _print_verdicts(result)
    if show:
        _print_wrong(judged)


def _print_verdicts(result: dict[str, Any]) -> None:
    supported = result["supported"]
    rows = table("claims", "n", "right", "share")
    kinds = [("supported: accepted", supported["n"], supported["accepted"])]
    kinds += [
        (f"{kind}: caught", one["n"], one["caught"]) for kind, one in result["by_kind"].items()
    ]
    for name, count, right in kinds:
        share = f"{right / count:.3f}" if count else "–"
        rows.add_row(escape(shorten(name)), str(count), str(right), share)
    stdout().print(rows)


def _print_wrong(judged: list[JudgedClaim]) -> None:
    out = stdout()
    for one in judged:
        if not one.is_right:
            row = one.labelled
            wrong = f"{row.kind}: {one.reason or 'accepted'}"
            out.print(f"[bold]{escape(row.place)}[/bold] {escape(shorten(wrong, LONGEST))}")
            out.print(f"  {escape(shorten(row.claim, LONGEST))}")


WIDTH = 30  # characters of a full bar; chosen
NOTHING = "–"


@with_options
def questions(
    file: Annotated[Path, path_argument("FILE.jsonl", "Questions with their right pages.")],
    collection: CollectionName = None,
    pipeline: Annotated[
        str, typer.Option("--pipeline", help=f"{', '.join(PIPELINES)}.")
    ] = "hybrid",
    show: Annotated[
        bool, typer.Option("--show", help="Print the questions whose right page is not first.")
    ] = False,
    in_framework: Annotated[
        bool, typer.Option("--in-framework", help="Search in the framework that a row names.")
    ] = False,
    *,
    options: CallerOptions,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Ask a collection questions whose pages are known: how often the right one is first."""
    if pipeline not in PIPELINES:
        raise CallerError(f"--pipeline is one of {', '.join(PIPELINES)}", value=pipeline)
    with opened(settings_from(options.data, changes)) as session:
        catalogue = session.catalogue
        found = collection_of(session, options.auth, collection)
        collection = found.name
        asked = read_page_questions(file, catalogue.list_documents(options.auth, found))
        with StageBars(as_json) as progress:
            done = ask_pages(
                *(session, options.auth, collection, asked, pipeline, progress),
                in_framework=in_framework,
            )
        warnings = list(session.warnings)
    about = {"file": str(file), "collection": collection, "pipeline": pipeline}
    result = {**about, "in_framework": in_framework, **summarise_pages(done), "warnings": warnings}
    if as_json:
        print_json(result)
        return
    _print_ranks(result)
    if show:
        _print_missed(result["questions"])


def _print_ranks(result: dict[str, Any]) -> None:
    out = stdout()
    out.print(
        f"[bold]{escape(result['collection'])}[/bold] · {result['pipeline']}"
        f" · {result['n']} questions"
    )
    rows = table("", "n", "top-1", "MRR")
    groups = {"all": result, "before re-ranking": {**result, **result["before_rerank"]}}
    for name, group in {**groups, **result["by_framework"]}.items():
        cells = (str(group["n"]), f"{group['top1']:.3f}", f"{group['mrr']:.3f}")
        rows.add_row(escape(name), *cells)
    out.print(rows)
    _chart("rank of the right page", {"before": result["ranks_before"], "after": result["ranks"]})
    _chart("distance of the best hit", result["distances"])
    gained, named = result["places_gained"], result["framework_top1"]
    out.print(
        f"places gained by re-ranking: {NOTHING if gained is None else f'{gained:+.2f}'}"
        f" · right framework first: {NOTHING if named is None else f'{named:.3f}'}"
        f" · of a wrong version in the first {TOP}: {result[f'wrong_version_top{TOP}'] or 0}"
    )
    out.print(f"latency: p50 {result['p50_ms']:.0f} ms, p95 {result['p95_ms']:.0f} ms")


def _chart(title: str, series: dict[str, dict[str, int]]) -> None:
    """Print how many questions are in each group, the series beside one another."""
    rows = table(title, *(cell for name in series for cell in (name, "")))
    most = max((count for counts in series.values() for count in counts.values()), default=0) or 1
    for group in next(iter(series.values())):
        cells = []
        for counts in series.values():
            count = counts[group]
            cells += [str(count), "█" * round(WIDTH * count / most)]
        rows.add_row(group, *cells)
    for column in rows.columns[2::2]:
        column.justify = "left"
    stdout().print(rows)


def _print_missed(asked: list[dict[str, Any]]) -> None:
    out = stdout()
    for one in asked:
        if one["rank"] != 1:
            rank = one["rank"] or "not found"
            out.print(f"[bold]{escape(one['question'])}[/bold] [dim]rank {rank}[/dim]")
            out.print(f"  {escape(', '.join(one['pages']))}")
            out.print(f"  [dim]first: {escape((one['found'] or [NOTHING])[0])}[/dim]")
