"""`carrel feedback`: what a user likes and dislikes, which moves what is recommended to them."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from cli.arguments import CollectionName, Json, Yes
from cli.options import CallerOptions, collection_of, opened_catalogue, storable, with_options
from cli.terminal.output import ask_to_erase, counted, print_json, stdout
from stores.runlog.runs import DocumentOpinion

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
        found = collection_of(opened, auth, collection)
        rated = opened.runs.list_ratings(auth, found.id)
    if as_json:
        print_json({"ratings": [one.describe() for one in rated]})
        return
    for one in rated:
        stdout().print(escape(f"{one.rating:<8}{one.document_id}  {one.title}"))


@app.command("reset")
@with_options
def reset(options: CallerOptions, yes: Yes = False) -> None:
    """Forget all you like and dislike, in every collection."""
    if not yes:
        ask_to_erase(f"all that {options.auth.user} likes and dislikes")
    with opened_catalogue(options.settings()) as opened:
        count = opened.runs.delete_ratings(options.auth)
    stdout().print(f"{counted(count, 'opinion')} forgotten")
