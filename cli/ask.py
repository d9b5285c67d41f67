"""`carrel ask`: one question, one cited answer or one refusal."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.markup import escape

from cli.draw import step_line
from cli.options import (
    DEFAULT_COLLECTION,
    DEFAULT_TENANT,
    CollectionName,
    Data,
    Json,
    Roles,
    Set,
    Steps,
    Tenant,
    User,
    opened,
    settings_from,
    storable,
)
from cli.output import print_json, stderr, stdout, warn
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
    data: Data = None,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Answer a question from a collection; exit code 3 says it was refused."""
    from core.auth import AuthContext
    from graph.context import checked_question

    if pipeline not in PIPELINES:
        raise CallerError("--pipeline is agentic or classic", value=pipeline)
    settings = settings_from(data, changes)
    question = checked_question(storable(question), settings)
    auth = caller(AuthContext, tenant, user, role)
    err = stderr()
    on_step = (lambda step: err.print(step_line(step))) if steps else None
    with opened(settings) as session:
        run = session.ask(
            question,
            auth,
            collection,
            pipeline="classic" if pipeline == "classic" else "agentic",
            on_step=on_step,
        )
    if as_json:
        print_json(run.result)
    else:
        print_answer(run.result)
    if run.result["refused"]:
        raise typer.Exit(REFUSED)


def caller(kind: Any, tenant: str, user: str, roles: list[str] | None) -> Any:  # noqa: ANN401
    """Return who is asking; the person at this machine vouches for it."""
    return kind(tenant=tenant, user=user, roles=frozenset(roles or []))


def print_answer(result: dict[str, Any]) -> None:
    """Print an answer with its sources, or a refusal, and what it took."""
    out = stdout()
    out.print(escape(result["answer"]), style="red" if result["refused"] else None)
    titles = {item["chunk_id"]: item for item in result["evidence"]}
    numbers: dict[str, int] = {}
    for claim in result["claims"]:
        for citation in claim["citations"]:
            chunk = citation["chunk_id"]
            if chunk in numbers:
                continue
            numbers[chunk] = len(numbers) + 1
            item = titles.get(chunk, {})
            place = [part for part in (item.get("section"), page_text(item.get("page"))) if part]
            where = f" · {' · '.join(place)}" if place else ""
            out.print(f"[dim]\\[{numbers[chunk]}] {escape(citation['source'] + where)}[/dim]")
    for warning in result["warnings"]:
        warn(warning)
    usage = result["usage"]
    out.print(
        f"[dim]run {result['run_id']} · {result['stop_reason']} · {usage['steps']} steps,"
        f" {usage['tool_calls']} tool calls, {usage['ms']:.0f} ms[/dim]"
    )


def page_text(page: int | None) -> str:
    """Return "p. 3" or nothing."""
    return f"p. {page}" if page else ""
