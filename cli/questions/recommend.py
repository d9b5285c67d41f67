"""`carrel recommend`: the documents that meet a need best, with reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from cli.arguments import Json, path_option
from cli.options import AskOptions, opened, storable, with_options
from cli.terminal.answer import shortened
from cli.terminal.output import checked_out, print_json, stdout, warn, write_files
from display.relations import NONE, WORDS, no_relations, relations_drawing
from serve.recommending import MOST_ITEMS, recommended

BAR = 10  # cells of a bar
SHOWN = 160  # characters of a reason; chosen, not measured
NAMED = 28  # of a title in the table


@with_options
def recommend(
    need: Annotated[str, typer.Argument(help="What is needed, in words.", show_default=False)],
    options: AskOptions,
    k: Annotated[int, typer.Option("-k", min=1, max=MOST_ITEMS, help="Documents at most.")] = 10,
    compare: Annotated[
        bool, typer.Option("--compare", help="Print the table that compares them alone.")
    ] = False,
    graph: Annotated[
        Path | None, path_option("--graph", "Draw how they are related, an .svg file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Recommend documents for a need: projects, books, whatever a collection has.

    What the need says of language, licence, platform, audience, maturity and size must be so; what
    a document does not say of itself is not so.
    """
    settings = options.settings()
    if graph is not None:
        checked_out(graph, (".svg",))
    with opened(settings, check=options.check_collections) as session:
        named = options.collections_in(session)
        found = recommended(session, options.auth, storable(need), named, k, options.filters)
    if graph is not None:
        write_files({graph: relations_drawing(found["relations"]) or no_relations()})
        found["warnings"] += [] if found["relations"] else [NONE]
    if as_json:
        print_json(found)
        return
    for name, one in found["constraints"].items():
        stdout().print(escape(f"must be so: {name}: {one['wanted']}"), style="dim")
    if not compare:
        _print_items(found["items"])
    if found["items"]:
        stdout().print(_comparison(found["items"]))
        for one in found["relations"] if not compare else ():
            stdout().print(escape(f"{one['title']} {WORDS[one['kind']]} {one['target']}"))
    else:
        stdout().print("nothing meets this need")
    for warning in found["warnings"]:
        warn(warning)


def _print_items(items: list[dict[str, Any]]) -> None:
    out = stdout()
    for number, item in enumerate(items, start=1):
        out.print(
            f"[bold]{number}. {escape(item['title'])}[/bold]"
            f" [dim]{escape(item['document_id'])} · {item['score']:.2f}[/dim]"
        )
        for name, value in item["factors"].items():
            full = round(value * BAR)
            out.print(f"   {name:<14}[cyan]{'█' * full}{'░' * (BAR - full)}[/cyan] {value:.2f}")
        for reason in item["reasons"]:
            out.print("   · " + escape(shortened(reason["text"], SHOWN)))


def _comparison(items: list[dict[str, Any]]) -> Table:
    """Return the table of all factors; a dash stands for what a document does not say."""
    names = list(dict.fromkeys(name for item in items for name in item["factors"]))
    table = Table("", "score", *names, box=None, pad_edge=False)
    for number, item in enumerate(items, start=1):
        values = (item["factors"].get(name) for name in names)
        shown = ["–" if value is None else f"{value:.2f}" for value in values]
        title = escape(shortened(item["title"], NAMED))
        table.add_row(f"{number}. {title}", f"{item['score']:.2f}", *shown)
    return table
