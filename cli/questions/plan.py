"""`carrel plan`: how a question would be answered, as text and as a picture; nothing is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from cli.arguments import Json, named_path
from cli.options import AskOptions, opened, storable, with_ask_options
from cli.terminal.draw import plan_tree
from cli.terminal.output import print_json, stdout, warn
from core.auth import AuthContext
from core.budget import Usage
from core.errors import CallerError, shorten
from core.question import checked_question
from core.settings import Settings
from core.types import ToolSpec
from reasoning.planning.compiler import compiled
from reasoning.planning.files import PlanFile, load_plan
from reasoning.planning.proposing import proposed_plan
from reasoning.planning.slots import filled
from reasoning.planning.text import render_operation

SHOWN_CHARS = 300


@with_ask_options
def plan(
    options: AskOptions,
    question: Annotated[
        str | None, typer.Argument(help="The question; not needed with --file.", show_default=False)
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            help="Check this plan (JSON) instead of making one.",
            show_default=False,
            parser=named_path,
            metavar="<path>",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the plan of a question, or check a plan file, without running it."""
    if question is None and file is None:
        raise CallerError("a question or --file is needed", hint='try `carrel plan "…"`')
    settings = options.settings()
    asked = None if question is None else checked_question(storable(question), settings)
    auth = options.auth
    scope = options.collections, options.filters
    if file is not None:
        made, about = _read(file, settings, auth, *scope)
    else:
        made, about = _proposed(str(asked), settings, auth, *scope)
    if as_json:
        print_json(
            {
                "questions": [item.model_dump() for item in made.plan.questions],
                "operations": [item.model_dump() for item in made.operations],
                **about,
            }
        )
        return
    _print(made, about)


def _read(
    file: Path, settings: Settings, auth: AuthContext, collection: str, where: list[str]
) -> tuple[PlanFile, dict[str, Any]]:
    """Check a file; the collection is opened only for a plan that names tools."""

    def tools() -> list[ToolSpec]:
        with opened(settings) as session:
            return session.tools(auth, collection, where).specs(auth)

    made = load_plan(file, settings, tools)
    kind = "multi" if len(made.plan.questions) > 1 else "plain"
    return made, {"kind": kind, "reasoner": "file", "warnings": []}


def _proposed(
    question: str, settings: Settings, auth: AuthContext, collection: str, where: list[str]
) -> tuple[PlanFile, dict[str, Any]]:
    """Let the reasoner of a collection plan, as a run would."""
    with opened(settings) as session:
        context = session.context(auth, collection, where=where)
        with context.thinking(context.clock(), Usage(), []) as ledger:
            understood = context.reasoner.understand(question, [])
            tools = context.tools.specs(auth)
            found, notes = proposed_plan(context.reasoner, understood, tools, context.settings)
        made = PlanFile(plan=found, operations=compiled(found, context.settings))
        about = {
            "kind": understood.kind,
            "reasoner": context.reasoner.name,
            "warnings": [*session.warnings, *ledger.warnings, *notes],
        }
    return made, about


def _print(made: PlanFile, about: dict[str, Any]) -> None:
    out = stdout()
    count = len(made.plan.questions)
    named = f"{count} question{'s' if count > 1 else ''}"
    out.print(f"[bold]{named}[/bold] [dim]{about['kind']} · {about['reasoner']}[/dim]\n")
    for item in made.plan.questions:
        name = shorten(f"{item.id} → {item.slot}" if item.slot else item.id)
        after = shorten(f" after {', '.join(item.deps)}") if item.deps else ""
        tools = ", ".join(call.tool for call in item.calls)
        out.print(
            f"  [cyan]{escape(name)}[/cyan] {escape(shorten(filled(item.text, {}), SHOWN_CHARS))}"
            f"[dim]{escape(f' · {after}' if after else '')}{escape(f' · {tools}' if tools else '')}"
            "[/dim]"
        )
    out.print("\n[bold]Operations[/bold]")
    for operation in made.operations:
        out.print("  " + escape(render_operation(operation)))
    out.print("\n[bold]Picture[/bold]")
    out.print(plan_tree(made.plan))
    for warning in about["warnings"]:
        warn(warning)
