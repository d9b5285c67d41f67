"""`carrel report`: what the documents of collections are like, and the settings that follow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from cli.arguments import DEFAULT_USER, Json, Yes, path_option
from cli.options import CallerOptions, opened, storables, with_options, working
from cli.server.access import record
from cli.server.running import placed, shown
from cli.terminal.output import agreed, asks, checked_out, print_json, stdout, write_files
from core.errors import CallerError
from core.question import joined_names
from serve.study.page import study_page
from serve.study.study import Study, advised_profile, advised_study

if TYPE_CHECKING:
    from app.session import Session
    from stores.sqlite.catalogue import Collection


@with_options
def report(
    collections: Annotated[
        list[str], typer.Argument(help="Collections of documents.", show_default=False)
    ],
    *,
    options: CallerOptions,
    out: Annotated[
        Path | None, path_option("--out", "The page, an .html file [default: report.html].")
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Set what is advised; chunks at the next ingest.")
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Compare what the caller sees of collections in ten figures, and advise their settings."""
    target = out or (None if as_json else placed(Path("report.html")))
    if target is not None:
        checked_out(target, (".html",))
    if apply and options.user != DEFAULT_USER:
        rule = "--apply is for the operator, since settings are those of all readers"
        raise CallerError(rule, hint="leave out --user")
    if apply and not yes and not asks():
        rule = "settings are not changed without a terminal to ask on"
        raise CallerError(rule, hint="add -y to change them without being asked")
    names = joined_names(storables(collections))
    with opened(options.settings()) as session:
        named = session.catalogue.collections_named(options.auth, names)
        found = [advised_study(session, options.auth, one) for one in named]
        if target is not None:
            write_files({target: study_page(found)})
        if not as_json:
            _print(found, target)
        advised = [pair for pair in zip(named, found, strict=True) if pair[1].advice]
        if apply and advised and not yes and not agreed("Change these settings?"):
            raise typer.Exit(1)
        if apply:
            with working(session, f"settings of {names}", quiet=as_json):
                for collection, one in advised:
                    _apply(session, collection, one)
    if as_json:
        changed = [one.collection for _, one in advised if apply]
        print_json({"collections": [one.model_dump() for one in found], "applied": changed})


def _print(found: Sequence[Study], target: Path | None) -> None:
    out = stdout()
    for one in found:
        counts = f"{one.documents} documents, {one.passages} passages, {one.code_share:.0%} code"
        out.print(f"[bold]{escape(one.collection)}[/bold]: {counts}")
        for part in one.advice:
            out.print(escape(f"  {part.setting}: {part.now} → {part.advised} ({part.why})"))
        if not one.advice:
            out.print("  the settings are those that its figures advise")
    if target is not None:
        out.print(f"[dim]written to {escape(shown(target))}[/dim]")


def _apply(session: Session, collection: Collection, one: Study) -> None:
    profile = advised_profile(collection.profile, one.advice)
    session.intake.open_collection(collection.tenant, collection.name, profile)
    given = {part.setting: part.advised for part in one.advice}
    about = {"collection": collection.name, **given}
    record(session.accounts, session.settings, "settings", collection.tenant, **about)
