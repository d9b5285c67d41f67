"""`carrel ask`: one question, one cited answer or one refusal."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.interrupt import interruptible
from cli.options import (
    DEFAULT_COLLECTION,
    DEFAULT_TENANT,
    CollectionName,
    Data,
    Json,
    Roles,
    Set,
    Steps,
    Stream,
    Tenant,
    User,
    opened,
    settings_from,
    storable,
)
from cli.output import print_json
from cli.watching import Watching
from core.errors import CallerError

REFUSED = 3
PIPELINES = ("agentic", "classic")


def ask(
    question: Annotated[str, typer.Argument(help="The question.", show_default=False)],
    collection: CollectionName = DEFAULT_COLLECTION,
    tenant: Tenant = DEFAULT_TENANT,
    user: User = "local",
    role: Roles = None,
    pipeline: Annotated[
        str, typer.Option("--pipeline", help="agentic, or classic for the one-pass baseline.")
    ] = "agentic",
    steps: Steps = False,
    stream: Stream = None,
    data: Data = None,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Answer a question from a collection; exit code 3 says it was refused."""
    from core.auth import AuthContext
    from graph.context import checked_question

    if pipeline not in PIPELINES:
        raise CallerError("--pipeline is agentic or classic", value=pipeline)
    settings = settings_from(data, changes, stream)
    question = checked_question(storable(question), settings)
    auth = caller(AuthContext, tenant, user, role)
    watching = Watching(steps=steps, quiet=as_json)
    with watching, opened(settings) as session, interruptible() as cancelled:
        run = session.ask(
            question,
            auth,
            collection,
            pipeline="classic" if pipeline == "classic" else "agentic",
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


def caller(kind: Any, tenant: str, user: str, roles: list[str] | None) -> Any:  # noqa: ANN401
    """Return who is asking; the person at this machine vouches for it."""
    return kind(tenant=tenant, user=user, roles=frozenset(roles or []))
