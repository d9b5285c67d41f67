"""`carrel eval trajectories`: the way to each answer of gold cases, and why those fail that do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from cli.arguments import DEFAULT_COLLECTION, Json, Set, path_argument, path_option
from cli.demo import CORPORA, EXAMPLES
from cli.evaluation.eval import NOTHING, interval_text, table
from cli.options import CallerOptions, opened, settings_from, with_options
from cli.terminal.output import checked_out, print_json, stdout, warn, write_files
from cli.terminal.progress import StageBars
from core.errors import CallerError, shorten
from core.profile import load_profile
from core.settings import Settings
from evals.answers import checked_answering
from evals.attribution import run_cases
from evals.corpus import AUTH, COLLECTION, Progress, build_documents, open_corpus
from evals.gold import GoldFile, read_gold
from evals.report import trajectory_page
from evals.trajectories import GoldPlace, TrajectoryRuns, check_place, trajectories_json

PAGES = (".html",)


@with_options
def trajectories(
    files: Annotated[
        list[Path],
        path_argument("FILE", "Gold cases in YAML; `docs/reference/formats.md` says how."),
    ],
    options: CallerOptions,
    collection: Annotated[
        str | None,
        typer.Option("--collection", "-c", help="Collection asked, where a case names none."),
    ] = None,
    pipeline: Annotated[str, typer.Option("--pipeline", help="auto, agentic or classic.")] = "auto",
    report: Annotated[
        Path | None,
        path_option("--report", "Write a page with causes, cases and traces: NAME.html."),
    ] = None,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Ask gold cases, measure the way to each answer, and lay each failure at its cause.

    A case passes by its refusal or its answer; where neither is expected by its citations, else by
    its calls. Tool selection is the share of tools both expected and called, of those that are
    either; a call is redundant when earlier ones had found all it finds. A cause is one of
    understanding, planning, tool_choice, extraction, retrieval, ranking, grading, answering,
    verification, policy, not_in_the_documents.
    """
    settings, name = settings_from(options.data, changes), checked_answering(pipeline)
    page = None if report is None else checked_out(report, PAGES, "--report")
    runs = TrajectoryRuns()
    golds = [read_gold(path) for path in files]
    with StageBars(as_json) as progress:
        for gold in golds:
            if why := _missing(gold):
                file = gold.path.name
                runs.skipped += [{"id": one.id, "file": file, "why": why} for one in gold.cases]
                continue
            with _placed(gold, settings, options, collection, progress) as place:
                place = replace(place, pipeline=name)
                check_place(place)
                run_cases(place, runs, progress)
                runs.warnings += [x for x in place.session.warnings if x not in runs.warnings]
    if not runs.asked:
        raise CallerError("no case could be asked", value=runs.skipped[0]["why"])
    result = trajectories_json(runs, settings)
    if page is not None:
        write_files({page: trajectory_page(runs, result)})
    if as_json:
        print_json(result)
    else:
        _print(result, page)


def _paths(gold: GoldFile) -> list[Path]:
    """Return what is ingested for a file, nothing for one about a data directory."""
    if gold.corpus:
        if gold.corpus not in CORPORA:
            raise CallerError(
                f"{gold.path.name}: a corpus is a sample one",
                value=gold.corpus,
                hint=f"sample corpora: {', '.join(CORPORA)}; other files are `documents`",
            )
        return [EXAMPLES / gold.corpus]
    return [gold.path.parent / Path(name).expanduser() for name in gold.documents]


def _missing(gold: GoldFile) -> str:
    """Say which document of an optional file is not there; of another that is an error."""
    lost = [path for path in _paths(gold) if not path.exists()]
    if lost and not gold.optional:
        rule = f"{gold.path.name}: documents must exist"
        raise CallerError(rule, value=str(lost[0]), hint="`optional: true` skips them")
    return f"{lost[0]} is not there" if lost else ""


@contextmanager
def _placed(
    gold: GoldFile,
    settings: Settings,
    options: CallerOptions,
    collection: str | None,
    progress: Progress,
) -> Iterator[GoldPlace]:
    """Open what a file is about: the data directory, or what it names, ingested beside it."""
    paths = _paths(gold)
    if not paths:
        with opened(settings) as session:
            name = collection or gold.collection or DEFAULT_COLLECTION
            yield GoldPlace(session, gold, name, options.auth)
        return
    named = gold.profile or gold.corpus
    profile = load_profile(named, lambda path: gold.path.parent / path) if named else None
    corpus = build_documents(paths, settings, progress, profile)
    with open_corpus(corpus.settings) as session:
        yield GoldPlace(session, gold, COLLECTION, AUTH)


def _print(result: dict[str, Any], page: Path | None) -> None:
    out = stdout()
    out.print(f"[bold]{result['passed']} of {result['n']} cases pass[/bold]")
    rows = table("measure", "mean", "95% interval", "n")
    for name, value in result["metrics"].items():
        shown = NOTHING if value is None else f"{value:.3f}"
        interval = interval_text(result["ci"].get(name))
        rows.add_row(name, shown, interval, str(result["counts"].get(name, "")))
    out.print(rows)
    failed = [one for one in result["cases"] if one["cause"]]
    if failed:
        causes = table("case", "cause", "step", "shown by")
        for one in failed:
            step = one["step"]
            at = f"{step['number']} {step['node']}" if step else NOTHING
            causes.add_row(escape(shorten(one["id"])), one["cause"], at, escape(one["shown_by"]))
        out.print(causes)
    if result["skipped"]:
        out.print(
            f"[dim]skipped: {len(result['skipped'])} ({escape(result['skipped'][0]['why'])})[/dim]"
        )
    if page is not None:
        out.print(f"report: {escape(str(page))}")
    for warning in result["warnings"]:
        warn(warning)
