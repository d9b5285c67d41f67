"""`carrel search`: ranked passages, no answer."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.markup import escape

from cli.ask import caller
from cli.draw import shortened
from cli.options import (
    DEFAULT_TENANT,
    DEFAULT_USER,
    Collections,
    Data,
    Json,
    Roles,
    Set,
    Sources,
    Tenant,
    User,
    VersionPolicy,
    Where,
    named_collections,
    opened,
    settings_from,
    storable,
    storables,
)
from cli.output import print_json, stdout, warn
from core.errors import CallerError
from core.places import place_of

SHOWN = 300


def search(
    query: Annotated[str, typer.Argument(help="What to look for.", show_default=False)],
    collection: Collections = None,
    pipeline: Annotated[
        str, typer.Option("--pipeline", help="hybrid, linked, vector, keyword or classic.")
    ] = "hybrid",
    k: Annotated[int, typer.Option("-k", min=1, max=100, help="Results.")] = 10,
    tenant: Tenant = DEFAULT_TENANT,
    user: User = DEFAULT_USER,
    role: Roles = None,
    source: Sources = None,
    version_policy: VersionPolicy = "any",
    where: Where = None,
    data: Data = None,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Find passages, best first."""
    from core.auth import AuthContext
    from core.question import checked_question
    from serve.searching import SEARCHES, searched

    if pipeline not in SEARCHES:
        raise CallerError(f"--pipeline is one of {', '.join(SEARCHES)}", value=pipeline)
    settings = settings_from(data, changes)
    text = checked_question(storable(query), settings)
    auth = caller(AuthContext, tenant, user, role, source, version_policy)
    with opened(settings) as session:
        found = searched(
            session, auth, text, named_collections(collection), pipeline, k, storables(where)
        )
    if as_json:
        print_json(found)
        return
    _print(found["results"], found["warnings"])


def _print(results: list[dict[str, Any]], warnings: list[str]) -> None:
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
    if not results:
        out.print("nothing found")
    for warning in warnings:
        warn(warning)
