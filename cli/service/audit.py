"""`carrel audit`: what was done on a server, and whether the record of it is intact."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from cli.arguments import Data, Json
from cli.options import settings_from, storable
from cli.server.running import host
from cli.terminal.output import fail, print_json, stdout
from core.auth import AuthContext
from core.errors import CallerError
from core.settings import Settings
from stores.accounts.audit import AuditEntry, AuditLog, Kind
from stores.accounts.audit_chain import Head
from stores.ports import Accounts
from stores.sqlite.implementation import opened_catalogue

BROKEN = 1
HEAD = re.compile(r"([1-9][0-9]{0,17}):([0-9a-f]{64})", re.ASCII)

app = typer.Typer(help="Read and check the record of what callers did.")

OfTenant = Annotated[str, typer.Option("--tenant", help="Only of this tenant.", show_default="all")]


@app.command("verify")
def verify(
    expect: Annotated[
        list[str] | None,
        typer.Option("--expect", help="A head that an earlier check printed; repeat for more."),
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Check every row; the exit code is 1 when one was changed, added or removed."""
    expected = [_head(text) for text in expect or []]
    with _opened(data) as log:
        verdict = log.verify(*expected)
    if as_json:
        found = {"whole": not verdict.problem, "rows": verdict.rows, "head": str(verdict.head)}
        print_json({**found, "problem": verdict.problem, "seq": verdict.seq})
    elif verdict.problem:
        place = "" if verdict.seq is None else f"row {verdict.seq}: "
        fail(f"{place}{verdict.problem}. The {verdict.rows} rows before it are whole.")
    else:
        stdout().print(f"{verdict.rows} rows are whole; head {verdict.head}")
    if verdict.problem:
        raise typer.Exit(BROKEN)


@app.command("list")
def list_rows(
    tenant: OfTenant = "",
    kind: Annotated[
        str, typer.Option("--kind", help="Only of this kind.", show_default="all")
    ] = "",
    document: Annotated[
        str,
        typer.Option("--document", help="Only of this document or file.", show_default="all"),
    ] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000)] = 50,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List the newest rows."""
    with _opened(data) as log:
        given: dict[str, Any] = {"kind": storable(kind) or None, "limit": limit}
        given["document"] = storable(document) or None
        found = log.newest(storable(tenant) or None, **given)
    if as_json:
        print_json({"events": found})
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("seq", "at", "kind", "tenant", "user", "facts"):
        table.add_column(title, overflow="fold")
    for row in found:
        facts = json.dumps(row["facts"], ensure_ascii=False)
        shown = (str(row["seq"]), row["at"], row["kind"], row["tenant"], row["user"], facts)
        table.add_row(*shown)
    stdout().print(table, markup=False)


@app.command("export")
def export(data: Data = None) -> None:
    """Print every row with its hash, the oldest first, as lines of JSON."""
    with _opened(data) as log:
        for row in log.rows():
            sys.stdout.write(json.dumps(row) + "\n")


@contextmanager
def _opened(data: Path | None) -> Iterator[AuditLog]:
    settings = settings_from(data)
    with opened_catalogue(settings.data, insecure=settings.storage.insecure_permissions) as kept:
        yield kept.accounts.audit(settings)


def _head(text: str) -> Head:
    match = HEAD.fullmatch(text)
    if match is None:
        raise CallerError(
            "a head is a row's number and its hash, as `carrel audit verify` prints it",
            value=text,
            hint="give NUMBER:HASH",
        )
    return Head(int(match[1]), match[2])


OPERATOR = "command.line"  # the user that the audit log names


def record(accounts: Accounts, settings: Settings, kind: Kind, tenant: str, **facts: Any) -> None:  # noqa: ANN401
    """Add a row to the audit log; when this returns it is kept."""
    if (here := host()) is not None:
        settings = here.session.settings  # the server's log has the server's key
    if settings.audit.enabled:
        auth = AuthContext(tenant=tenant, user=OPERATOR)
        accounts.audit(settings).append([AuditEntry(kind, auth, facts)])
