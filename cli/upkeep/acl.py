"""`carrel acl`: who may read a document, shown and replaced without another ingest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from cli.arguments import DEFAULT_TENANT, Data, Json, Tenant, Yes
from cli.options import opened, opened_catalogue, settings_from, storable, storables
from cli.server.access import OPERATOR
from cli.server.running import host
from cli.terminal.output import ask_to_erase, counted, print_json, stdout
from core.auth import AuthContext, checked_name, checked_principal
from core.errors import CallerError

if TYPE_CHECKING:
    from stores.ports import Catalogue
    from stores.sqlite.access_lists import AccessList
    from stores.sqlite.catalogue import Collection

app = typer.Typer(help="Show and replace who may read a document; nothing is ingested again.")

SOURCE = typer.Argument(help="As `carrel documents` shows it.", show_default=False)
Source = Annotated[str, SOURCE]
Within = Annotated[
    str | None,
    typer.Option("--collection", "-c", help="The collection that it is in.", show_default="any"),
]


@app.command("set")
def set_readers(
    source: Annotated[
        str | None,
        typer.Argument(help="As `carrel documents` shows it.", show_default="all of -c"),
    ] = None,
    acl: Annotated[
        list[str] | None,
        typer.Option("--acl", help="Who may read it: a role or user:NAME; repeat for more."),
    ] = None,
    everyone: Annotated[
        bool, typer.Option("--everyone", help="Open it to the whole tenant.")
    ] = False,
    collection: Within = None,
    yes: Yes = False,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Replace who may read a document, with all that its file holds, or a whole collection.

    It holds at once, also for stored runs and conversations. A later ingest keeps the list,
    unless it names readers itself.
    """
    readers = _readers(acl, everyone)
    settings = settings_from(data)
    if source is None and collection is None:
        raise CallerError("name a document, or with -c a collection", value="neither")
    if source is None and not yes:  # a document that was not named must not open all of them
        ask_to_erase(f"the lists of readers that the documents of {collection} have")
    with opened(settings) as session:
        if (here := host()) is not None:
            settings = here.session.settings  # a server's log has its key
        within = _collections(session.catalogue, tenant, collection)
        by = AuthContext(tenant=tenant, user=OPERATOR)
        log = session.accounts.audit(settings) if settings.audit.enabled else None
        intake = session.intake
        if source is None:
            done, before = intake.set_all_access(within[0], readers, by=by, log=log), None
        else:
            done, before = intake.set_access(within, storable(source), readers, by=by, log=log)
    if as_json:
        print_json({**done.describe(), **({} if before is None else {"before": before})})
    elif before is None:
        stdout().print(escape(_line(done)))
    else:
        stdout().print(escape(f"{_line(done)}; before: {_named(before)}"))


@app.command("show")
def show(
    source: Source,
    collection: Within = None,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show who may read a document."""
    with opened_catalogue(settings_from(data)) as kept:
        within = _collections(kept.catalogue, tenant, collection)
        found = kept.intake.find_access(within, storable(source))
    if as_json:
        print_json(found.describe())
    else:
        stdout().print(escape(_line(found)))


@app.command("default")
def default_readers(
    collection: Annotated[
        str, typer.Option("--collection", "-c", help="The collection.", show_default=False)
    ],
    acl: Annotated[
        list[str] | None,
        typer.Option("--acl", help="Who may read it: a role or user:NAME; repeat for more."),
    ] = None,
    everyone: Annotated[
        bool, typer.Option("--everyone", help="Open it to the whole tenant.")
    ] = False,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show or replace who may read what is ingested later without a list of its own.

    What is there keeps its list. A missing collection is made.
    """
    readers = _readers(acl, everyone) if acl or everyone else None
    settings = settings_from(data)
    with opened(settings, create=readers is not None) as session:
        if (here := host()) is not None:
            settings = here.session.settings  # a server's log has its key
        if readers is None:
            (found,) = _collections(session.catalogue, tenant, collection)
            now, before = session.intake.default_access(found), None
        else:
            checked_name("collection", storable(collection))
            found = session.intake.open_collection(checked_name("tenant", tenant), collection, None)
            by = AuthContext(tenant=tenant, user=OPERATOR)
            log = session.accounts.audit(settings) if settings.audit.enabled else None
            before = session.intake.set_default_access(found, readers, by=by, log=log)
            now = readers
    if as_json:
        print_json({"collection": collection, "default": now, "before": before})
    else:
        was = "" if before is None else f"; before: {_named(before)}"
        stdout().print(escape(f"later documents of {collection}: {_named(now)}{was}"))


def _readers(given: list[str] | None, everyone: bool) -> list[str]:
    """Return the readers that were named, each once; raises CallerError for none."""
    named = [part.strip() for one in storables(given) for part in one.split(",")]
    if bool(named) == everyone:
        rule = "give either --acl, who may read it, or --everyone"
        raise CallerError(rule, hint="such as --acl legal --acl user:ann")
    return sorted({checked_principal(one) for one in named})


def _collections(catalogue: Catalogue, tenant: str, name: str | None) -> list[Collection]:
    checked_name("tenant", tenant)
    if name is None:
        return catalogue.collections(tenant)
    return [catalogue.collection(tenant, storable(name))]


def _line(found: AccessList) -> str:
    of = f"{counted(found.documents, 'document')}, {counted(found.chunks, 'chunk')}"
    return f"{found.source} in {found.collection.name} ({of}): {_named(found.acl)}"


def _named(acl: list[str]) -> str:
    return ", ".join(acl) or "everyone of the tenant"
