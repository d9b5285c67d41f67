"""`carrel source`: named sources of documents that are kept in sync."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from app.syncing import SyncReport, forget_source, sync_source
from cli.arguments import (
    DEFAULT_TENANT,
    Data,
    FilledCollection,
    Json,
    Set,
    Tenant,
    Yes,
    path_option,
)
from cli.options import collection_to_fill, opened, opened_catalogue, settings_from, storable
from cli.server.access import record
from cli.server.running import placed
from cli.terminal.output import ask_to_erase, counted, fail, print_json, stderr, stdout
from cli.terminal.progress import StageBars
from cli.upkeep.ingest import SHOWN_FAILURES
from core.auth import checked_name, checked_principal
from core.errors import CallerError, CarrelError
from core.settings_sources import read_values
from ingest.connectors.address import Address, checked_parameters, parse_address
from ingest.connectors.opening import check_source
from stores.runlog.sources import SourceRow

if TYPE_CHECKING:
    from app.session import Session

app = typer.Typer(help="Keep folders, sites, repositories, mailboxes and stores in sync.")

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
LEAST_S, MOST_S = 10, 366 * 86_400  # between two syncs; chosen, not measured
Name = Annotated[str, typer.Argument(help="Name of the source.", show_default=False)]


def seconds_of(text: str) -> int:
    """Return the seconds of a time such as 90s, 15m, 1h or 1d; raises CallerError."""
    found = re.fullmatch(r"(\d{1,9})([smhd])", text)
    seconds = int(found[1]) * UNITS[found[2]] if found else 0
    if not LEAST_S <= seconds <= MOST_S:
        rule = f"--every is a number with s, m, h or d, from {LEAST_S}s to 366d"
        raise CallerError(rule, value=text, hint="such as --every 1h; leave it out to sync by hand")
    return seconds


@app.command("add")
def add(
    name: Name,
    address: Annotated[
        str, typer.Argument(help="Folder, URL, or loader:MODULE.CLASS.", show_default=False)
    ],
    collection: FilledCollection = None,
    every: Annotated[
        str,
        typer.Option(
            "--every", help="Sync while a server runs, such as 1h.", show_default="by hand"
        ),
    ] = "",
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Allow addresses that are not public.")
    ] = False,
    acl: Annotated[
        list[str] | None,
        typer.Option("--acl", help="Who may read what it brings: a role or user:NAME; repeat."),
    ] = None,
    parameters: Annotated[
        Path | None, path_option("--parameters", "YAML of a loader's parameters.")
    ] = None,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Add a source; nothing is read before `carrel source sync`, or its time comes."""
    collection = collection_to_fill(collection)
    checked_name("tenant", tenant)
    checked_name("collection", collection)
    checked_name("source", name)
    if "://" not in address and not address.startswith("loader:"):
        address = str(placed(Path(address)))
    found = parse_address(name, storable(address))
    options = {"private": allow_private, "parameters": _parameters(found, parameters)}
    readers = frozenset(
        checked_principal(one.strip()) for part in acl or [] for one in part.split(",")
    )
    row = SourceRow(
        tenant,
        "",
        name,
        collection,
        found.text,
        options,
        readers,
        seconds_of(every) if every else 0,
    )
    settings = settings_from(data)
    warning = check_source(name, found, settings, options)
    with opened(settings, create=True) as session:
        session.accounts.sources().add(row)
    if warning:
        stderr().print(escape(f"{name}: {warning}"))
    if as_json:
        print_json(row.describe())
        return
    when = (
        f"every {every} while `carrel serve` runs" if every else f"by `carrel source sync {name}`"
    )
    stdout().print(escape(f"{name}: {found.text} → {collection}, synced {when}"))


def _parameters(address: Address, file: Path | None) -> dict[str, Any]:
    """Return the parameters of a loader; raises CallerError for what they may not be."""
    if file is None:
        return {}
    if address.kind != "loader":
        raise CallerError("--parameters are those of a loader", value=address.text)
    if not file.is_file():
        raise CallerError("the file of parameters must exist", value=str(file))
    return checked_parameters(read_values(file, "the file of parameters"))


@app.command("list")
def list_sources(tenant: Tenant = DEFAULT_TENANT, data: Data = None, as_json: Json = False) -> None:
    """Show the sources, and how the last sync of each ended."""
    with opened_catalogue(settings_from(data)) as kept:
        rows = kept.accounts.sources().list_sources(checked_name("tenant", tenant))
    if as_json:
        print_json({"sources": [one.describe() for one in rows]})
        return
    for row in rows:
        stdout().print(escape(_line(row)))
    if not rows:
        stdout().print("there is no source yet: `carrel source add NAME ADDRESS`")


def _line(row: SourceRow) -> str:
    ago = f", {(time.time() - row.synced) / 60:.0f} min ago" if row.synced else ""
    every = f" every {row.every} s" if row.every else ""
    owner = f" of {row.user}" if row.user else ""
    why = f": {row.message}" if row.message else ""
    return f"{row.name}{owner}: {row.address} → {row.collection}{every}, {row.state}{ago}{why}"


@app.command("sync")
def sync(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names of sources.", show_default="all")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Read everything again.")] = False,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Read what changed at sources and forget what is gone; one that fails stops no other."""
    reports: list[dict[str, Any]] = []
    failed = 0
    with opened(settings_from(data, changes), needs_embedder=True) as session:
        rows = session.accounts.sources()
        wanted = [rows.find(tenant, storable(one)) for one in names or []]
        for row in wanted or rows.list_sources(tenant):
            try:
                report = _synced(session, row, quiet=as_json, fresh=fresh)
            except CarrelError as error:
                failed += 1
                reports.append({"source": row.name, "error": str(error)})
                fail(f"{row.name}: {error}")
                continue
            reports.append(report.describe())
            if not as_json:
                _show(report)
    if as_json:
        print_json(reports[0] if len(names or []) == 1 else {"syncs": reports})
    if failed:
        raise typer.Exit(1)


def _synced(session: Session, row: SourceRow, *, quiet: bool, fresh: bool) -> SyncReport:
    auth = None
    if row.caller:  # of a caller over HTTP, whose rights it keeps
        auth, _ = row.sender()

    def noted(kind: Any, **facts: Any) -> None:  # noqa: ANN401 - the log's own
        record(session.accounts, session.settings, kind, row.tenant, **facts)

    with StageBars(quiet) as progress:
        return sync_source(session, row, progress, auth=auth, record=noted, fresh=fresh)


def _show(report: SyncReport) -> None:
    out = stdout()
    out.print(
        f"[bold]{escape(report.source)}[/bold] → {report.collection}: {report.items} items ·"
        f" {report.new} new · {report.changed} changed · {report.unchanged} unchanged ·"
        f" {counted(report.removed, 'document')} removed · {len(report.failed)} failed ·"
        f" {len(report.left_out)} left out ·"
        f" {report.bytes} bytes read in {report.seconds:.1f} s"
    )
    for found, kind in (
        (report.failed, "[red]failed[/red]"),
        (report.left_out, "[yellow]left out[/yellow]"),
    ):
        for one in found[:SHOWN_FAILURES]:
            out.print(f"  {kind} {escape(one.path)}: {escape(one.reason)}")
        if len(found) > SHOWN_FAILURES:
            out.print(f"  … {len(found) - SHOWN_FAILURES} more; --json lists all")
    for note in report.notes:
        out.print(f"  [yellow]note[/yellow] {escape(note)}")


@app.command("remove")
def remove(
    name: Name,
    documents: Annotated[
        bool, typer.Option("--documents", help="Forget the documents too; asks first.")
    ] = False,
    yes: Yes = False,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Remove a source; its documents stay, unless --documents."""
    with opened(settings_from(data)) as session:
        row = session.accounts.sources().find(tenant, storable(name))
        items = session.accounts.sources().items(row)
        if documents and not yes:
            ask_to_erase(f"what source '{row.name}' has brought ({counted(len(items), 'file')})")
        removed = forget_source(session, row, documents=documents)
        if removed:
            facts = {"collection": row.collection, "documents": removed}
            record(session.accounts, session.settings, "deletion", row.tenant, **facts)
    if as_json:
        print_json({"removed": row.name, "documents": removed})
        return
    stay = f"{counted(removed, 'document')} forgotten" if documents else "its documents stay"
    stderr().print(escape(f"{row.name} is no longer synced; {stay}"))
