"""`carrel report`: what the documents of collections are like, and the settings that follow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from cli.arguments import DEFAULT_USER, Json, Yes, path_option
from cli.options import CallerOptions, opened, storables, with_options, working
from cli.server.access import record
from cli.server.running import placed, shown
from cli.terminal.output import agreed, asks, checked_out, print_json, stdout, write_files
from core.errors import CallerError
from core.question import joined_names
from evals.study import Study, study
from evals.study_advice import Advice, advise, advised_profile
from evals.study_page import study_page

if TYPE_CHECKING:
    from app.session import Session
    from stores.sqlite.catalogue import Collection

PAGE = "report.html"


@with_options
def report(
    collections: Annotated[
        list[str], typer.Argument(help="Collections of documents.", show_default=False)
    ],
    *,
    options: CallerOptions,
    out: Annotated[
        Path | None, path_option("--out", f"The page, an .html file [default: {PAGE}].")
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Put the advice into the collections' settings.")
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Study collections side by side: ten figures, and the settings that they advise.

    It counts what the caller sees. Advised chunks are made by the next ingest; nothing is erased.
    """
    target = out or (None if as_json else placed(Path(PAGE)))
    if target is not None:
        checked_out(target, (".html",))
    if apply:
        _check_may_apply(options, yes=yes)
    with opened(options.settings()) as session:
        named = session.catalogue.collections_named(
            options.auth, joined_names(storables(collections))
        )
        found = [_studied(session, options, one) for one in named]
        if target is not None:
            advice = {one.collection: given for one, given in found}
            page = study_page([one for one, _ in found], advice)
            write_files({target: page})
        if not as_json:
            _print(found, target)
        if apply:
            _apply(session, named, found, yes=yes, quiet=as_json)
    if as_json:
        print_json({"collections": [_described(*one) for one in found], "applied": apply})


def _check_may_apply(options: CallerOptions, *, yes: bool) -> None:
    if options.user != DEFAULT_USER:
        raise CallerError(
            "--apply is for the operator, since settings are those of all readers",
            hint="leave out --user",
        )
    if not yes and not asks():
        raise CallerError(
            "settings are not changed without a terminal to ask on",
            hint="add -y to change them without being asked",
        )


def _studied(
    session: Session, options: CallerOptions, collection: Collection
) -> tuple[Study, list[Advice]]:
    """Return the figures and the advice; raises CallerError for a collection that is empty."""
    catalogue, auth = session.catalogue, options.auth
    settings = session.index(collection).settings
    found = study(
        collection.name,
        collection.profile.name,
        lambda: catalogue.visible_passages(auth, collection),
        mixed=settings.ingest.chunker == "structural",
    )
    if not found.documents:
        raise CallerError(
            "a report needs documents", value=collection.name, hint="`carrel ingest` adds some"
        )
    return found, advise(found, settings)


def _described(found: Study, advice: Sequence[Advice]) -> dict[str, Any]:
    return {**found.model_dump(mode="json"), "advice": [one.model_dump() for one in advice]}


def _print(found: Sequence[tuple[Study, list[Advice]]], target: Path | None) -> None:
    out = stdout()
    for one, advice in found:
        out.print(
            f"[bold]{escape(one.collection)}[/bold]: {one.documents} documents,"
            f" {one.passages} passages, {one.code_share:.0%} code"
        )
        if not advice:
            out.print("  the settings are those that its figures advise")
        for part in advice:
            out.print(escape(f"  {part.setting}: {part.now} → {part.advised} ({part.why})"))
    if target is not None:
        out.print(f"[dim]written to {escape(shown(target))}[/dim]")


def _apply(
    session: Session,
    named: Sequence[Collection],
    found: Sequence[tuple[Study, list[Advice]]],
    *,
    yes: bool,
    quiet: bool,
) -> None:
    """Change the profiles of collections, once a person has agreed."""
    changed = [
        (collection, advice) for collection, (_, advice) in zip(named, found, strict=True) if advice
    ]
    if not changed:
        return
    names = ", ".join(collection.name for collection, _ in changed)
    if not yes and not agreed(f"Change these settings of {names}?"):
        raise typer.Exit(1)
    with working(session, f"settings of {names}", quiet=quiet):
        for collection, advice in changed:
            profile = advised_profile(collection.profile, advice)
            session.intake.open_collection(collection.tenant, collection.name, profile)
            given = {one.setting: one.advised for one in advice}
            about = {"collection": collection.name, **given}
            record(session.accounts, session.settings, "settings", collection.tenant, **about)
    if not quiet:
        stdout().print("searches use them now; `carrel ingest` of the same files cuts chunks anew")
