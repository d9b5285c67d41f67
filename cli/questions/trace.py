"""`carrel trace`, what a run did, and `carrel why`, the reason for its answer in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from cli.arguments import Json, path_option, values
from cli.options import (
    CallerOptions,
    opened_catalogue,
    storable,
    with_options,
)
from cli.server.running import shown
from cli.terminal.answer import (
    call_table,
    model_table,
    path_line,
    plan_tree,
    print_answer,
    shortened,
    stage_table,
    step_table,
)
from cli.terminal.output import checked_out, plain_table, print_json, stdout, write_files
from core.errors import CallerError
from core.language.detect import detect_language
from core.operations import operation_adapter
from core.trace import RunRecord
from core.types import Plan, SubQuestion
from display.runs import run_page
from display.steps import operation_text
from display.why import explain
from stores.runlog.runs import changed_since

NEWEST = 15  # runs, chosen to fit a screen
PAGES = (".html",)
ONE_SEARCH = ("RETRIEVE", "SYNTHESIZE")  # what a plain question compiles to
PIPED_WIDTH = 160  # columns, chosen: the tables of a run fit


@with_options
def trace(
    options: CallerOptions,
    run: Annotated[
        str | None,
        typer.Argument(
            help="Run id, its beginning, or 'last'; none lists the newest runs.",
            autocompletion=values("cli.values:runs"),
        ),
    ] = None,
    out: Annotated[
        Path | None,
        path_option("--out", "Write the run as a page (.html) instead, which needs no other file."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the steps of a run, with the filter of every tool call, and the path it took.

    Text that the user may not see now, with these roles, is hidden.
    """
    if out is not None and run is None:
        raise CallerError("--out writes one run", hint="name it, or say 'last'")
    page = None if out is None else checked_out(out, PAGES)
    auth = options.auth
    with opened_catalogue(options.settings()) as kept:
        newest = kept.runs.newest(auth, NEWEST) if run is None else []
        found = None if run is None else kept.runs.load(auth, storable(run))
        changed = [] if found is None else changed_since(found, kept.catalogue, auth)
    if page is not None and found is not None:
        _write_page(page, found, as_json)
    elif as_json and found is None:
        print_json({"runs": [item.model_dump(exclude={"trail", "result"}) for item in newest]})
    elif as_json and found is not None:
        print_json(found.model_dump() | {"changed": changed})
    elif found is None:
        print_runs(newest)
    else:
        print_run(found)
        for note in changed:
            stdout().print(note, style="yellow")


def _write_page(page: Path, run: RunRecord, as_json: bool) -> None:
    write_files({page: run_page(run)})
    if as_json:
        print_json({"run_id": run.run_id, "out": shown(page)})
    else:
        stdout().print(f"run {run.run_id} is in {escape(shown(page))}")


def print_runs(runs: Sequence[RunRecord]) -> None:
    """Print the newest runs, a line each."""
    table = plain_table("run", "when", "collection", "ended", "question")
    for item in runs:
        ended = str(item.result.get("stop_reason"))
        question = escape(shortened(item.question, 70))
        table.add_row(item.run_id, item.created_at[:19], item.collection, ended, question)
    _wide().print(table)


def print_run(run: RunRecord) -> None:
    """Print the steps, the tool calls, the path and the answer of one run."""
    out, language = _wide(), detect_language(run.question)
    out.print(f"[bold]{escape(run.question)}[/bold]")
    out.print(
        f"[dim]{run.collection} · {run.pipeline} · {run.created_at}"
        f" · index version {run.index_version}[/dim]\n"
    )
    out.print(step_table(run.trail, language))
    out.print("\n[bold]Tool calls[/bold]")
    out.print(call_table(run.trail, language))
    if any(step.calls for step in run.trail):
        out.print("\n[bold]Model calls[/bold] [dim](tokens read, of them held from before)[/dim]")
        out.print(model_table(run.trail))
    if any(step.stages for step in run.trail):
        out.print("\n[bold]Stages of the searches[/bold]")
        out.print(stage_table(run.trail))
    _print_plan(out, run.result.get("plan") or {}, language)
    out.print("\n[bold]Path[/bold]")
    out.print(path_line(run.trail), markup=False)
    out.print()
    print_answer(run.result)


def _print_plan(out: Console, plan: dict[str, Any], language: str) -> None:
    """Draw the plan of a run that asked more than one thing, and list the values it found."""
    operations = plan.get("operations") or []
    if len(operations) <= len(ONE_SEARCH):
        return
    questions = [SubQuestion.model_validate(held) for held in plan["questions"]]
    out.print("\n[bold]Plan[/bold]")
    out.print(plan_tree(Plan(questions=questions)))
    for held in plan["slots"]:
        out.print(f"  [cyan]{escape(held['slot'])}[/cyan] = {escape(held['value'])}", end=" ")
        out.print(f"[dim]found for {escape(held['question'])} in {held['evidence_id']}[/dim]")
    for held in operations:
        done = "●" if held["out"] in plan["ran"] or held["op"] == "SYNTHESIZE" else "○"
        line = operation_text(operation_adapter.validate_python(held), language)
        out.print(f"  {done} {escape(line)}")


def _wide() -> Console:
    out = stdout()
    if not out.is_terminal:
        out.width = PIPED_WIDTH  # a file has no edge to wrap at
    return out


@with_options
def why(
    options: CallerOptions,
    run: Annotated[
        str,
        typer.Argument(
            help="Run id, its beginning, or 'last', the newest.",
            autocompletion=values("cli.values:runs"),
        ),
    ] = "last",
    as_json: Json = False,
) -> None:
    """Say in one sentence why the answer of a run is what it is.

    What the user may not see now, with these roles, is left out.
    """
    with opened_catalogue(options.settings()) as kept:
        found = kept.runs.load(options.auth, storable(run))
        changed = changed_since(found, kept.catalogue, options.auth)
    reason = explain(found)
    if as_json:
        print_json({"run_id": found.run_id, **reason._asdict(), "changed": changed})
    else:
        shown = " ".join([reason.sentence, *(f"But {note}." for note in changed)])
        stdout().print(escape(shown), soft_wrap=True, highlight=False)
