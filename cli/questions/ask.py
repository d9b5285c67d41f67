"""`carrel ask`, `plan` and `search`: one question, answered, planned or looked up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.markup import escape

from cli.arguments import Json, Steps, Stream, path_option, values
from cli.options import AskOptions, opened, storable, with_options
from cli.terminal.answer import plan_tree, shortened
from cli.terminal.output import given_text, print_json, stdout, warn
from cli.terminal.progress import Watching, interruptible
from core.budget import Usage
from core.errors import CallerError, shorten
from core.language.detect import detect_language
from core.question import checked_question
from core.settings import Settings
from core.types import ToolSpec, place_of
from display.steps import operation_text, tool_name
from reasoning.planning.files import PlanFile, load_plan
from reasoning.planning.slots import filled
from serve.searching import SEARCHES, describe_passages, find_passages

if TYPE_CHECKING:
    from graph.context import PipelineName

REFUSED = 3
PIPELINES = ("auto", "agentic", "classic", "single")
NO_PLAN = ("classic", "single")


@with_options
def ask(
    question: Annotated[
        str, typer.Argument(help="The question; - reads it from stdin.", show_default=False)
    ],
    options: AskOptions,
    pipeline: Annotated[
        str,
        typer.Option(
            "--pipeline",
            help="auto: a plain question skips the planner; agentic: none does; classic: one pass;"
            " single: a model reads one search.",
            autocompletion=values("cli.questions.ask:PIPELINES"),
        ),
    ] = "auto",
    plan: Annotated[
        Path | None,
        path_option("--plan", "Run this plan (JSON, as `carrel plan --json` writes it)."),
    ] = None,
    steps: Steps = False,
    stream: Stream = None,
    as_json: Json = False,
) -> None:
    """Answer a question from a collection; exit code 3 says it was refused."""
    path = _checked(pipeline, plan)
    filters = options.filters
    settings = options.settings(stream)
    auth = options.auth
    check = options.check_collections
    watching = Watching(steps=steps, quiet=as_json)
    with (
        watching,
        opened(settings, answers=True, check=check) as session,
        interruptible() as cancelled,
    ):
        question = given_text(question)  # here, since a server may have to read it
        watching.language = detect_language(question)
        named, given = options.collections_in(session), None
        if plan is not None:
            given = load_plan(plan, settings, lambda: session.tools(auth, named).specs(auth))
        run = session.ask(
            storable(question),
            auth,
            named,
            pipeline=path,
            where=filters,
            given=given,
            on_step=watching.step,
            on_stream=watching.stream,
            cancelled=cancelled.is_set,
        )
    if as_json:
        print_json(run.result)
    else:
        watching.finish(run.result)
    if run.result["refused"]:
        raise typer.Exit(REFUSED)


def _checked(pipeline: str, plan: Path | None) -> PipelineName:
    if pipeline not in PIPELINES:
        names = ", ".join(PIPELINES)
        raise CallerError("--pipeline must be known", value=pipeline, hint=f"choose from {names}")
    if plan is not None and pipeline in NO_PLAN:
        raise CallerError(f"the {pipeline} pipeline runs no plan", hint="leave one of them out")
    return cast("PipelineName", pipeline)


SHOWN_CHARS = 300  # of a question, chosen


@with_options
def plan(
    options: AskOptions,
    question: Annotated[
        str | None, typer.Argument(help="The question; not needed with --file.", show_default=False)
    ] = None,
    file: Annotated[
        Path | None, path_option("--file", "Check this plan (JSON) instead of making one.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the plan of a question, or check a plan file, without running it."""
    if question is None and file is None:
        raise CallerError("a question or --file is needed", hint='try `carrel plan "…"`')
    settings = options.settings()
    asked = None if question is None else checked_question(storable(question), settings)
    if file is not None:
        made, about = _checked_file(file, settings, options)
    else:
        made, about = _proposed(str(asked), settings, options)
    if as_json:
        print_json(
            {
                "questions": [item.model_dump() for item in made.plan.questions],
                "operations": [item.model_dump() for item in made.operations],
                **about,
            }
        )
        return
    _print_plan(made, about)


def _checked_file(
    file: Path, settings: Settings, options: AskOptions
) -> tuple[PlanFile, dict[str, Any]]:
    """Check a file; the collection is opened only for a plan that names tools."""

    def tools() -> list[ToolSpec]:
        with opened(settings) as session:
            auth, named = options.auth, options.collections_in(session)
            return session.tools(auth, named, options.filters).specs(auth)

    made = load_plan(file, settings, tools)
    kind = "multi" if len(made.plan.questions) > 1 else "plain"
    return made, {"kind": kind, "reasoner": "file", "warnings": []}


def _proposed(
    question: str, settings: Settings, options: AskOptions
) -> tuple[PlanFile, dict[str, Any]]:
    with opened(settings, check=options.check_collections) as session:
        named = options.collections_in(session)
        context = session.context(options.auth, named, where=options.filters)
        with context.thinking({"started": context.clock(), "usage": Usage()}) as ledger:
            understood = context.reasoner.understand(question, [])
            found, operations, notes = context.planned(understood)
        made = PlanFile(plan=found, operations=operations)
        about = {
            "kind": understood.kind,
            "reasoner": context.reasoner.name,
            "warnings": [*session.warnings, *ledger.warnings, *notes],
        }
    return made, about


def _print_plan(made: PlanFile, about: dict[str, Any]) -> None:
    out = stdout()
    count = len(made.plan.questions)
    language = made.plan.questions[0].language
    named = f"{count} question{'s' if count > 1 else ''}"
    out.print(f"[bold]{named}[/bold] [dim]{about['kind']} · {about['reasoner']}[/dim]\n")
    for item in made.plan.questions:
        name = shorten(f"{item.id} → {item.slot}" if item.slot else item.id)
        after = shorten(f" after {', '.join(item.deps)}") if item.deps else ""
        tools = ", ".join(dict.fromkeys(tool_name(call.tool, language) for call in item.calls))
        out.print(
            f"  [cyan]{escape(name)}[/cyan] {escape(shorten(filled(item.text, {}), SHOWN_CHARS))}"
            f"[dim]{escape(f' · {after}' if after else '')}{escape(f' · {tools}' if tools else '')}"
            "[/dim]"
        )
    out.print("\n[bold]Operations[/bold]")
    for operation in made.operations:
        out.print("  " + escape(operation_text(operation, language)))
    out.print("\n[bold]Picture[/bold]")
    out.print(plan_tree(made.plan))
    for warning in about["warnings"]:
        warn(warning)


SHOWN = 300  # characters of a passage, chosen


@with_options
def search(
    query: Annotated[
        str, typer.Argument(help="What to look for; - reads stdin.", show_default=False)
    ],
    options: AskOptions,
    pipeline: Annotated[
        str,
        typer.Option(
            "--pipeline",
            help="hybrid, linked, vector, keyword or classic.",
            autocompletion=values("serve.searching:SEARCHES"),
        ),
    ] = "hybrid",
    k: Annotated[
        int | None,
        typer.Option(
            "-k", min=1, max=100, help="Results; retrieval.top_k without it.", show_default=False
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print what each score is made of.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Find passages, best first."""
    if pipeline not in SEARCHES:
        raise CallerError(f"--pipeline is one of {', '.join(SEARCHES)}", value=pipeline)
    settings = options.settings()
    with opened(settings, check=options.check_collections) as session:
        query = given_text(query)  # here, since a server may have to read it
        named = options.collections_in(session)
        wanted = (storable(query), named, pipeline, k, options.filters)
        found = describe_passages(session, find_passages(session, options.auth, *wanted))
    if as_json:
        print_json(found)
        return
    _print_passages(found["results"], found["warnings"], explain=explain)


def _print_passages(results: list[dict[str, Any]], warnings: list[str], *, explain: bool) -> None:
    out = stdout()
    for number, result in enumerate(results, start=1):
        place = place_of(result["section"], result["page"])
        parts = (result["collection"], result["source"], place)
        out.print(
            f"[bold]{number}. {escape(result['title'])}[/bold]"
            f" [dim]{escape(' · '.join(part for part in parts if part))}"
            f" · {result['score']:.3f}[/dim]"
        )
        out.print("   " + escape(shortened(result["text"], SHOWN)))
        if explain:
            made = " · ".join(f"{name} {value:.3f}" for name, value in result["scores"].items())
            out.print(f"   [dim]{escape(made)}[/dim]")
    if not results:
        out.print("nothing found")
    for warning in warnings:
        warn(warning)
