"""`carrel feedback`: what a user likes and dislikes, which moves what is recommended to them."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from cli.arguments import CollectionName, Json, Yes
from cli.options import CallerOptions, collection_of, opened_catalogue, storable, with_options
from cli.terminal.output import ask_to_erase, counted, print_json, stdout
from stores.ports import Record
from stores.runlog.runs import DocumentOpinion
from stores.sqlite.catalogue import Collection

app = typer.Typer(help="Like and dislike documents; list or reset what you said of them.")

DocumentId = Annotated[str, typer.Argument(metavar="DOCUMENT_ID", help="Its id.")]


@app.command("like")
@with_options
def like(document: DocumentId, options: CallerOptions, collection: CollectionName = None) -> None:
    """Like a document: what is like it comes earlier."""
    _rate(document, options, collection, "up")


@app.command("dislike")
@with_options
def dislike(
    document: DocumentId, options: CallerOptions, collection: CollectionName = None
) -> None:
    """Dislike a document: it and what is like it come later."""
    _rate(document, options, collection, "down")


@app.command("use")
@with_options
def use(document: DocumentId, options: CallerOptions, collection: CollectionName = None) -> None:
    """Say that you use what a document is about, which counts as a like."""
    _rate(document, options, collection, "adopted")


def _rate(
    document: str, options: CallerOptions, collection: str | None, rating: DocumentOpinion
) -> None:
    auth = options.auth
    with opened_catalogue(options.settings()) as opened:
        found = collection_of(opened, auth, collection)
        opened.runs.rate_document(auth, found.id, storable(document), rating)
    named = {"up": "liked", "down": "disliked"}.get(rating, rating)
    stdout().print(escape(f"{document} is {named}"))


@app.command("list")
@with_options
def list_ratings(
    options: CallerOptions, collection: CollectionName = None, as_json: Json = False
) -> None:
    """List, or export with --json, what you like and dislike, newest first."""
    auth = options.auth
    with opened_catalogue(options.settings()) as opened:
        rated = [
            (found.name, one)
            for found in _collections(opened, options, collection)
            for one in opened.runs.list_ratings(auth, found.id)
        ]
    rated.sort(key=lambda row: row[1].created_at, reverse=True)
    if as_json:
        print_json({"ratings": [{**one.describe(), "collection": name} for name, one in rated]})
        return
    for _, one in rated:
        stdout().print(escape(f"{one.rating:<8}{one.document_id}  {one.title}"))


def _collections(opened: Record, options: CallerOptions, named: str | None) -> list[Collection]:
    """Return the collection of a name, or all that the caller sees."""
    if named is not None:
        return [opened.catalogue.visible_collection(options.auth, storable(named))]
    return opened.catalogue.visible_collections(options.auth)


@app.command("reset")
@with_options
def reset(options: CallerOptions, yes: Yes = False) -> None:
    """Forget all you like and dislike, in every collection."""
    if not yes:
        ask_to_erase(f"all that {options.auth.user} likes and dislikes")
    with opened_catalogue(options.settings()) as opened:
        count = opened.runs.delete_ratings(options.auth)
    stdout().print(f"{counted(count, 'opinion')} forgotten")
