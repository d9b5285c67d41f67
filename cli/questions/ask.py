"""`carrel ask`: one question, one cited answer or one refusal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from cli.arguments import Json, Steps, Stream, named_path
from cli.options import AskOptions, opened, storable, with_ask_options
from cli.terminal.output import print_json
from cli.terminal.watching import Watching, interruptible
from core.auth import AuthContext
from core.errors import CallerError
from core.settings import Settings
from reasoning.planning.files import PlanFile, load_plan

if TYPE_CHECKING:
    from app.session import Session
    from graph.context import PipelineName

REFUSED = 3
PIPELINES = ("auto", "agentic", "classic", "single")
NO_PLAN = ("classic", "single")


@with_ask_options
def ask(
    question: Annotated[str, typer.Argument(help="The question.", show_default=False)],
    options: AskOptions,
    pipeline: Annotated[
        str,
        typer.Option(
            "--pipeline",
            help="auto: a plain question skips the planner; agentic: none does; classic: one pass.",
        ),
    ] = "auto",
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            help="Run this plan (JSON, as `carrel plan --json` writes it).",
            show_default=False,
            parser=named_path,
            metavar="<path>",
        ),
    ] = None,
    steps: Steps = False,
    stream: Stream = None,
    as_json: Json = False,
) -> None:
    """Answer a question from a collection; exit code 3 says it was refused."""
    path = _checked(pipeline, plan)
    named, filters = options.collections, options.filters
    settings = options.settings(stream)
    auth = options.auth
    watching = Watching(steps=steps, quiet=as_json)
    with watching, opened(settings) as session, interruptible() as cancelled:
        run = session.ask(
            storable(question),
            auth,
            named,
            pipeline=path,
            where=filters,
            given=None if plan is None else _given(plan, session, auth, named, settings),
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


def _given(
    path: Path, session: Session, auth: AuthContext, collection: str, settings: Settings
) -> PlanFile:
    return load_plan(path, settings, lambda: session.tools(auth, collection).specs(auth))
