"""`carrel ask`: one question, one cited answer or one refusal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from cli.interrupt import interruptible
from cli.options import (
    DEFAULT_TENANT,
    DEFAULT_USER,
    Collections,
    Data,
    Json,
    Roles,
    Set,
    Sources,
    Steps,
    Stream,
    Tenant,
    User,
    VersionPolicy,
    Where,
    named_collections,
    named_path,
    opened,
    settings_from,
    storable,
    storables,
)
from cli.output import print_json
from cli.watching import Watching
from core.errors import CallerError

if TYPE_CHECKING:
    from core.auth import AuthContext
    from core.settings import Settings
    from graph.context import PipelineName
    from graph.session import Session
    from reasoning.planning.files import PlanFile

REFUSED = 3
LONGEST_VERSION = 64
PIPELINES = ("auto", "agentic", "classic")


def ask(
    question: Annotated[str, typer.Argument(help="The question.", show_default=False)],
    collection: Collections = None,
    tenant: Tenant = DEFAULT_TENANT,
    user: User = DEFAULT_USER,
    role: Roles = None,
    source: Sources = None,
    version_policy: VersionPolicy = "any",
    where: Where = None,
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
    data: Data = None,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Answer a question from a collection; exit code 3 says it was refused."""
    from core.auth import AuthContext
    from core.question import checked_question

    path = _checked(pipeline, plan)
    named, filters = named_collections(collection), storables(where)
    settings = settings_from(data, changes, stream)
    question = checked_question(storable(question), settings)
    auth = caller(AuthContext, tenant, user, role, source, version_policy)
    watching = Watching(steps=steps, quiet=as_json)
    with watching, opened(settings) as session, interruptible() as cancelled:
        run = session.ask(
            question,
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
    if plan is not None and pipeline == "classic":
        raise CallerError("the classic pipeline runs no plan", hint="leave one of them out")
    return cast("PipelineName", pipeline)


def _given(
    path: Path, session: Session, auth: AuthContext, collection: str, settings: Settings
) -> PlanFile:
    from reasoning.planning.files import load_plan

    return load_plan(path, settings, lambda: session.tools(auth, collection).specs(auth))


def caller(
    kind: Any,  # noqa: ANN401
    tenant: str,
    user: str,
    roles: list[str] | None,
    sources: list[str] | None = None,
    version_policy: str = "any",
) -> Any:  # noqa: ANN401
    """Return who is asking; the person at this machine vouches for it, and is it by default."""
    from core.auth import checked_sources

    if not 0 < len(version_policy) <= LONGEST_VERSION:
        rule = "--version-policy is any, latest or one version"
        raise CallerError(rule, value=repr(version_policy), hint="leave it out for any")
    return kind(
        tenant=tenant,
        user=user,
        roles=frozenset(roles or []),
        allowed_sources=checked_sources(storables(sources)) or None,
        version_policy=storable(version_policy),
        operator=user == DEFAULT_USER and not roles and not sources,
    )
