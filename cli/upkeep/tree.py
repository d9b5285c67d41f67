"""`carrel tree`: build the tree of a collection, and show what of it the caller sees."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.tree import Tree

from cli.arguments import Json, Set
from cli.options import CallerOptions, flags_from, opened, storable, with_options, working
from cli.terminal.output import counted, print_json, stdout
from cli.terminal.progress import StageBars
from core.errors import AbsentError
from core.settings import load_settings
from display.tree import TreeOutline, outline

app = typer.Typer(help="Build and show the tree of a collection: summaries over its documents.")

Name = Annotated[str, typer.Argument(help="Collection of documents.", show_default=False)]


@app.command("build")
@with_options
def build(
    collection: Name,
    *,
    options: CallerOptions,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget the one there is.")] = False,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Build what the tree of a collection lacks; an interrupted build goes on.

    It counts what the caller sees. Later ingests keep it up (`ingest.tree`).
    """
    settings, _ = load_settings(flags_from(options.data, changes))
    with (
        StageBars(as_json) as progress,
        opened(settings, needs_embedder=True) as session,
        working(session, f"tree of {collection}", quiet=as_json),
    ):
        target = session.catalogue.visible_collection(options.auth, storable(collection))
        report = session.build_tree(options.auth, target, progress, fresh=fresh)
    if as_json:
        print_json(report)
    else:
        stdout().print(escape(f"{collection}: {_sizes(report)} in {report['seconds']:.1f} s"))


@app.command("show")
@with_options
def show(
    collection: Name,
    *,
    options: CallerOptions,
    depth: Annotated[int, typer.Option("--depth", min=1, help="Levels below the root.")] = 2,
    as_json: Json = False,
) -> None:
    """Draw the nodes that the caller sees, from the root down, with their summaries."""
    with opened(options.settings()) as session:
        target = session.catalogue.visible_collection(options.auth, storable(collection))
        found = session.describe_tree(options.auth, target, depth)
    if found is None:
        rule = "the collection has no tree, or none of documents that the caller may see"
        raise AbsentError(
            rule, value=collection, hint=f"build one: `carrel tree build {collection}`"
        )
    if as_json:
        print_json(found)
        return
    stdout().print(_drawn(outline(found)), soft_wrap=False, no_wrap=False)
    stdout().print(escape(f"{collection}: {_sizes(found)}"))


def _sizes(report: dict[str, Any]) -> str:
    levels, nodes = counted(report["levels"], "level"), counted(report["nodes"], "node")
    leaves = report["leaves"]
    return f"{levels}, {nodes}, {leaves} {'leaf' if leaves == 1 else 'leaves'}"


def _drawn(node: TreeOutline, above: Tree | None = None) -> Tree:
    """Add a node and those below it to a drawing."""
    text = "\n".join([f"[bold]{escape(node.label)}[/bold]", *map(escape, node.sentences)])
    branch = Tree(text) if above is None else above.add(text)
    for one in node.below:
        _drawn(one, branch)
    return branch
