"""`carrel keys`: who may ask a server, and for whom."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from rich.markup import escape
from rich.table import Table

from cli.arguments import DEFAULT_TENANT, Data, Json, Roles, Sources, Tenant, VersionPolicy
from cli.options import settings_from, storable, storables
from cli.service.audit import record
from cli.terminal.output import print_json, stderr, stdout, warn
from core.auth import checked_name
from core.settings import Settings
from stores.accounts.keys import Key
from stores.ports import Accounts
from stores.sqlite.implementation import opened_catalogue

app = typer.Typer(help="Make, list and revoke the keys of callers of `carrel serve`.")


@app.command("create")
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
    rate: Annotated[
        int | None,
        typer.Option(
            "--rate",
            min=0,
            help="Questions a minute; 0: any number.",
            show_default="as serve.ask_rate",
        ),
    ] = None,
    tokens_per_day: Annotated[
        int | None,
        typer.Option(
            "--tokens-per-day",
            min=0,
            help="Tokens of the chat model in 24 hours; 0: any number.",
            show_default="as serve.tokens_per_day",
        ),
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Make a key and show it once; only its hash is kept."""
    checked_name("tenant", tenant)
    if user:
        checked_name("user", user)
    roles = frozenset(checked_name("role", one) for one in role or [])
    settings = settings_from(data)
    with opened_catalogue(
        settings.data, create=True, insecure=settings.storage.insecure_permissions
    ) as kept:
        keys = kept.accounts.keys
        if user and (count := sum(one.auth.user == user for one in keys.listed(tenant))):
            others = "1 other key" if count == 1 else f"{count} other keys"
            stderr().print(f"[dim]{user} has {others}: they read what is asked with this one[/dim]")
        text, key = keys.create(
            tenant,
            user=user,
            roles=roles,
            sources=storables(source) or None,
            version_policy=version_policy,
            days=expires,
            rate=rate,
            tokens_per_day=tokens_per_day,
        )
        _record(kept.accounts, settings, "key_created", key)
    if as_json:
        print_json({"key": text, **key.describe()})
        return
    stderr().print("[dim]This is shown once; send it as `Authorization: Bearer …`:[/dim]")
    stdout().print(text)


@app.command("list")
def list_keys(
    tenant: Annotated[
        str, typer.Option("--tenant", help="Only of this tenant.", show_default="all")
    ] = "",
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List the keys, without their secrets."""
    settings = settings_from(data)
    with opened_catalogue(settings.data, insecure=settings.storage.insecure_permissions) as kept:
        found = kept.accounts.keys.listed(tenant)
        for warning in kept.warnings():  # a revoked key may look good again
            warn(warning)
    if as_json:
        print_json({"keys": [key.describe() for key in found]})
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("id", "tenant", "user", "roles", "sees", "created", "state"):
        table.add_column(title)
    for key in found:
        roles = ", ".join(sorted(key.auth.roles))
        named = (key.id, key.auth.tenant, key.auth.user, roles, _sees(key))
        table.add_row(*map(escape, named), key.created_at[:10], _state(key))
    stdout().print(table)


@app.command("revoke")
def revoke(
    key_id: Annotated[str, typer.Argument(help="The key's id.", show_default=False)],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Revoke a key; a running server refuses its next request."""
    settings = settings_from(data)
    with opened_catalogue(settings.data, insecure=settings.storage.insecure_permissions) as kept:
        key = kept.accounts.keys.revoke(storable(key_id))
        _record(kept.accounts, settings, "key_revoked", key)
    if as_json:
        print_json(key.describe())
    else:
        stdout().print(f"{key.id} is revoked")


def _record(
    accounts: Accounts, settings: Settings, kind: Literal["key_created", "key_revoked"], key: Key
) -> None:
    record(accounts, settings, kind, key.auth.tenant, **key.facts())


def _sees(key: Key) -> str:
    """Return to what a key is confined."""
    policy = key.auth.version_policy
    sources = key.auth.allowed_sources
    told = [] if sources is None else [", ".join(sources) or "no source"]
    told += [] if policy == "any" else [f"version {policy}"]
    return "; ".join(told) or "all"


def _state(key: Key) -> str:
    if key.revoked_at:
        return f"revoked {key.revoked_at[:10]}"
    return f"expires {key.expires_at[:10]}" if key.expires_at else "good"
