"""`carrel eval trajectories`: the way to each answer of gold cases, and why those fail that do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from app.session import Session
from cli.arguments import (
    DEFAULT_COLLECTION,
    DEFAULT_TENANT,
    DEFAULT_USER,
    Data,
    Json,
    Roles,
    Set,
    Tenant,
    User,
    path_argument,
    path_option,
)
from cli.demo import CORPORA, EXAMPLES
from cli.evaluation.eval import NOTHING, interval_text, table
from cli.options import caller, opened, settings_from
from cli.terminal.output import checked_out, print_json, stdout, warn, write_files
from cli.terminal.progress import StageBars
from core.auth import AuthContext
from core.errors import CallerError
from core.profile import load_profile
from core.settings import Settings
from evals.answers import checked_answering
from evals.attribution import run_cases
from evals.corpus import AUTH, COLLECTION, Progress, build_documents, open_corpus
from evals.gold import GoldFile, read_gold
from evals.trajectories import GoldPlace, TrajectoryRuns, check_place, trajectories_json
from evals.trajectory_page import trajectory_page

PAGES = (".html",)


def trajectories(
    files: Annotated[
        list[Path],
        path_argument("FILE", "Gold cases in YAML; `docs/reference/formats.md` says how."),
    ],
    collection: Annotated[
        str | None,
        typer.Option(
            "--collection",
            "-c",
            help="Collection of the cases that name none.",
            show_default="default",
        ),
    ] = None,
    pipeline: Annotated[str, typer.Option("--pipeline", help="auto, agentic or classic.")] = "auto",
    report: Annotated[
        Path | None,
        path_option("--report", "Write a page with causes, cases and traces: NAME.html."),
    ] = None,
    tenant: Tenant = DEFAULT_TENANT,
    user: User = DEFAULT_USER,
    role: Roles = None,
    data: Data = None,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Ask gold cases, measure the way to each answer, and lay each failure at its cause."""
    settings = settings_from(data, changes)
    name = checked_answering(pipeline)
    page = None if report is None else checked_out(report, PAGES)
    golds = [read_gold(path) for path in files]
    runs = TrajectoryRuns()
    auth = caller(tenant, user, role)
    with StageBars(as_json) as progress:
        for gold in golds:
            if missing := _missing(gold):
                why = f"{missing} is not there"
                runs.skipped += [
                    {"id": one.id, "file": gold.path.name, "why": why} for one in gold.cases
                ]
                continue
            with _placed(gold, settings, auth, collection, progress) as (session, asked, who):
                place = GoldPlace(session, gold, asked, who, name)
                check_place(place)
                run_cases(place, runs, progress)
                runs.warnings += [one for one in session.warnings if one not in runs.warnings]
    if not runs.asked:
        first = runs.skipped[0]
        raise CallerError("no case could be asked", value=f"{first['file']}: {first['why']}")
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
                hint=f"{', '.join(CORPORA)}; other files are `documents`",
            )
        return [EXAMPLES / gold.corpus]
    return [gold.path.parent / Path(name).expanduser() for name in gold.documents]


def _missing(gold: GoldFile) -> str:
    """Return a document of an optional file that is not there; of another that is an error."""
    lost = [path for path in _paths(gold) if not path.exists()]
    if lost and not gold.optional:
        raise CallerError(
            f"{gold.path.name}: documents must exist",
            value=str(lost[0]),
            hint="`optional: true` skips",
        )
    return str(lost[0]) if lost else ""


@contextmanager
def _placed(
    gold: GoldFile,
    settings: Settings,
    auth: AuthContext,
    collection: str | None,
    progress: Progress,
) -> Iterator[tuple[Session, str, AuthContext]]:
    """Open what a file is about: the data directory, or what it names, ingested beside it."""
    paths = _paths(gold)
    if not paths:
        with opened(settings) as session:
            yield session, collection or gold.collection or DEFAULT_COLLECTION, auth
        return
    named = gold.profile or gold.corpus
    profile = load_profile(named, lambda path: gold.path.parent / path) if named else None
    corpus = build_documents(paths, settings, progress, profile)
    with open_corpus(corpus.settings) as session:
        yield session, COLLECTION, AUTH


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
            causes.add_row(escape(one["id"]), one["cause"], at, escape(one["shown_by"]))
        out.print(causes)
    if result["skipped"]:
        out.print(
            f"[dim]skipped: {len(result['skipped'])} ({escape(result['skipped'][0]['why'])})[/dim]"
        )
    if page is not None:
        out.print(f"report: {escape(str(page))}")
    for warning in result["warnings"]:
        warn(warning)
