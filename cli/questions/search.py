"""`carrel search`: ranked passages, no answer."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.markup import escape

from cli.arguments import Json
from cli.options import AskOptions, opened, storable, with_ask_options
from cli.terminal.draw import shortened
from cli.terminal.output import print_json, stdout, warn
from core.errors import CallerError
from core.types import place_of
from serve.searching import SEARCHES, searched

SHOWN = 300


@with_ask_options
def search(
    query: Annotated[str, typer.Argument(help="What to look for.", show_default=False)],
    options: AskOptions,
    pipeline: Annotated[
        str, typer.Option("--pipeline", help="hybrid, linked, vector, keyword or classic.")
    ] = "hybrid",
    k: Annotated[
        int | None,
        typer.Option(
            "-k", min=1, max=100, help="Results; retrieval.top_k without it.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Find passages, best first."""
    if pipeline not in SEARCHES:
        raise CallerError(f"--pipeline is one of {', '.join(SEARCHES)}", value=pipeline)
    settings = options.settings()
    with opened(settings) as session:
        found = searched(
            session,
            options.auth,
            storable(query),
            options.collections,
            pipeline,
            k,
            options.filters,
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
