"""`carrel search`: ranked passages, no answer."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer
from rich.markup import escape

from cli.answer import page_text
from cli.ask import caller
from cli.draw import shortened
from cli.options import (
    DEFAULT_COLLECTION,
    DEFAULT_TENANT,
    CollectionName,
    Data,
    Json,
    Roles,
    Set,
    Tenant,
    User,
    opened,
    settings_from,
    storable,
)
from cli.output import print_json, stdout, warn
from core.errors import CallerError

TOOLS = {
    "hybrid": "search",
    "linked": "search",
    "vector": "search_vector",
    "keyword": "search_text",
    "classic": "search_classic",
}
SHOWN = 300
RESULT_KEYS = (
    *("document_id", "source", "chunk_id", "score", "text", "title", "section", "page"),
    *("language", "version", "updated_at", "scores", "metadata"),
)


def search(
    query: Annotated[str, typer.Argument(help="What to look for.", show_default=False)],
    collection: CollectionName = DEFAULT_COLLECTION,
    pipeline: Annotated[
        str, typer.Option("--pipeline", help="hybrid, linked, vector, keyword or classic.")
    ] = "hybrid",
    k: Annotated[int, typer.Option("-k", min=1, max=100, help="Results.")] = 10,
    tenant: Tenant = DEFAULT_TENANT,
    user: User = "local",
    role: Roles = None,
    data: Data = None,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Find passages, best first."""
    from core.auth import AuthContext
    from graph.context import checked_question

    if pipeline not in TOOLS:
        raise CallerError(f"--pipeline is one of {', '.join(TOOLS)}", value=pipeline)
    settings = settings_from(data, changes)
    text = checked_question(storable(query), settings)
    auth = caller(AuthContext, tenant, user, role)
    with opened(settings) as session:
        tools = session.tools(auth, collection)
        arguments: dict[str, Any] = {"query": text, "limit": k}
        if TOOLS[pipeline] == "search":
            arguments["links"] = pipeline == "linked" or tools.settings.channel_links
        deadline = time.monotonic() + settings.budget_seconds
        found = tools.run(TOOLS[pipeline], arguments, auth, deadline)
        warnings = [*session.warnings, *found.notes]
    results = [_result(item.model_dump()) for item in found.evidence[:k]]
    if as_json:
        print_json({"results": results, "warnings": warnings})
        return
    _print(results, warnings)


def _result(item: dict[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in RESULT_KEYS}


def _print(results: list[dict[str, Any]], warnings: list[str]) -> None:
    out = stdout()
    for place, result in enumerate(results, start=1):
        where = [part for part in (result["section"], page_text(result["page"])) if part]
        out.print(
            f"[bold]{place}. {escape(result['title'])}[/bold]"
            f" [dim]{escape(' · '.join([result['source'], *where]))}"
            f" · {result['score']:.3f}[/dim]"
        )
        out.print("   " + escape(shortened(result["text"], SHOWN)))
    if not results:
        out.print("nothing found")
    for warning in warnings:
        warn(warning)
