"""`carrel keys`, who may ask a server and for whom, and `carrel audit`, what was done there."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from cli.arguments import DEFAULT_TENANT, Data, Json, Roles, Sources, Tenant, VersionPolicy
from cli.options import settings_from, storable, storables
from cli.server.running import host
from cli.terminal.output import counted, fail, plain_table, print_json, stderr, stdout, warn
from core.auth import AuthContext, checked_name
from core.errors import CallerError
from core.settings import Settings
from stores.accounts.audit import AuditEntry, AuditLog, Kind
from stores.accounts.audit_chain import Head
from stores.accounts.keys import Key
from stores.ports import Accounts
from stores.sqlite.implementation import SqliteRecord, opened_catalogue

BROKEN = 1
HEAD = re.compile(r"([1-9][0-9]{0,17}):([0-9a-f]{64})", re.ASCII)

audit_app = typer.Typer(help="Read and check the record of what callers did.")

OfTenant = Annotated[str, typer.Option("--tenant", help="Only of this tenant.", show_default="all")]


@audit_app.command("verify")
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
    with _audit_log(data) as log:
        verdict = log.verify(*expected)
    rows = counted(verdict.rows, "row")
    if as_json:
        found = {"whole": not verdict.problem, "rows": verdict.rows, "head": str(verdict.head)}
        print_json({**found, "problem": verdict.problem, "seq": verdict.seq})
    elif verdict.problem:
        place = "" if verdict.seq is None else f"row {verdict.seq}: "
        fail(f"{place}{verdict.problem}. Unchanged before it: {rows}.")
    else:
        stdout().print(f"{rows} checked, none changed; head {verdict.head}")
    if verdict.problem:
        raise typer.Exit(BROKEN)


@audit_app.command("list")
def list_rows(
    tenant: OfTenant = "",
    kind: Annotated[
        str, typer.Option("--kind", help="Only of this kind.", show_default="all")
    ] = "",
    document: Annotated[
        str, typer.Option("--document", help="Only of this document or file.", show_default="all")
    ] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000)] = 50,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List the newest rows."""
    with _audit_log(data) as log:
        given: dict[str, Any] = {"kind": storable(kind) or None, "limit": limit}
        given["document"] = storable(document) or None
        found = log.newest(storable(tenant) or None, **given)
    if as_json:
        print_json({"events": found})
        return
    table = plain_table("seq", "at", "kind", "tenant", "user", "facts", overflow="fold")
    for row in found:
        facts = json.dumps(row["facts"], ensure_ascii=False)
        shown = (str(row["seq"]), row["at"], row["kind"], row["tenant"], row["user"], facts)
        table.add_row(*shown)
    stdout().print(table, markup=False)


@audit_app.command("export")
def export(data: Data = None) -> None:
    """Print every row with its hash, the oldest first, as lines of JSON."""
    with _audit_log(data) as log:
        for row in log.rows():
            sys.stdout.write(json.dumps(row) + "\n")


@contextmanager
def _audit_log(data: Path | None) -> Iterator[AuditLog]:
    settings = settings_from(data)
    with _opened(settings) as kept:
        yield kept.accounts.audit(settings)


def _opened(settings: Settings, *, create: bool = False) -> AbstractContextManager[SqliteRecord]:
    insecure = settings.storage.insecure_permissions
    return opened_catalogue(
        settings.data, create=create, insecure=insecure, catalogue=settings.catalogue
    )


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


keys_app = typer.Typer(help="Make, list and revoke the keys of callers of `carrel serve`.")


Rate = Annotated[
    int | None,
    typer.Option(
        "--rate", min=0, help="Questions a minute; 0: any number.", show_default="as serve.ask_rate"
    ),
]
TokensPerDay = Annotated[
    int | None,
    typer.Option(
        "--tokens-per-day",
        min=0,
        help="Tokens of the chat model in 24 hours; 0: any number.",
        show_default="as serve.tokens_per_day",
    ),
]


@keys_app.command("create")
def create(
    tenant: Tenant = DEFAULT_TENANT,
    user: Annotated[
        str, typer.Option("--user", help="Who asks with it.", show_default="the key's own name")
    ] = "",
    role: Roles = None,
    source: Sources = None,
    version_policy: VersionPolicy = "any",
    expires: Annotated[
        int, typer.Option("--expires", min=0, help="Days until it expires; 0: never.")
    ] = 0,
    rate: Rate = None,
    tokens_per_day: TokensPerDay = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Make a key and show it once; only its hash is kept."""
    checked_name("tenant", tenant)
    if user:
        checked_name("user", user)
    roles = frozenset(checked_name("role", one) for one in role or [])
    settings = settings_from(data)
    with _opened(settings, create=True) as kept:
        _say_who_reads(kept.accounts, tenant, user)
        text, key = kept.accounts.keys.create(
            tenant,
            user=user,
            roles=roles,
            sources=storables(source) or None,
            version_policy=version_policy,
            days=expires,
            rate=rate,
            tokens_per_day=tokens_per_day,
        )
        record(kept.accounts, settings, "key_created", tenant, **key.facts())
    if as_json:
        print_json({"key": text, **key.describe()})
        return
    stderr().print("[dim]This is shown once; send it as `Authorization: Bearer …`:[/dim]")
    stdout().print(text)


def _say_who_reads(accounts: Accounts, tenant: str, user: str) -> None:
    """Say which other keys of the user read what is asked with a new one."""
    if user and (count := sum(one.auth.user == user for one in accounts.keys.listed(tenant))):
        others = counted(count, "other key")
        stderr().print(f"[dim]{user} has {others}: they read what is asked with this one[/dim]")


@keys_app.command("list")
def list_keys(
    tenant: OfTenant = "",
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List the keys, without their secrets."""
    settings = settings_from(data)
    with _opened(settings) as kept:
        found = kept.accounts.keys.listed(tenant)
        for warning in kept.warnings():  # a revoked key may look good again
            warn(warning)
    if as_json:
        print_json({"keys": [key.describe() for key in found]})
        return
    if not found:
        stdout().print("there is no key yet: `carrel keys create --tenant default --user NAME`")
        return
    table = plain_table("id", "tenant", "user", "roles", "sees", "created", "state")
    for key in found:
        roles = ", ".join(sorted(key.auth.roles))
        named = (key.id, key.auth.tenant, key.auth.user, roles, _sees(key))
        table.add_row(*map(escape, named), key.created_at[:10], _state(key))
    stdout().print(table)


@keys_app.command("revoke")
def revoke(
    key_id: Annotated[str, typer.Argument(help="The key's id.", show_default=False)],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Revoke a key; a running server refuses its next request."""
    settings = settings_from(data)
    with _opened(settings) as kept:
        key = kept.accounts.keys.revoke(storable(key_id))
        record(kept.accounts, settings, "key_revoked", key.auth.tenant, **key.facts())
    if as_json:
        print_json(key.describe())
    else:
        stdout().print(f"{key.id} is revoked")


def _sees(key: Key) -> str:
    policy = key.auth.version_policy
    sources = key.auth.allowed_sources
    told = [] if sources is None else [", ".join(sources) or "no source"]
    told += [] if policy == "any" else [f"version {policy}"]
    return "; ".join(told) or "all"


def _state(key: Key) -> str:
    if key.revoked_at:
        return f"revoked {key.revoked_at[:10]}"
    return f"expires {key.expires_at[:10]}" if key.expires_at else "valid"
