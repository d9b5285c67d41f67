"""Settings of signing in through an OpenID Connect provider."""

from __future__ import annotations

from typing import ClassVar
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from core.fields.group import IGNORED, ChangeRule, Group

HERE = frozenset({"localhost", "127.0.0.1", "::1"})


def is_secure(url: str) -> bool:
    """Tell whether nobody on the way can read or change what is sent to an address."""
    parts = urlsplit(url)
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in HERE)
    )


def paired(entry: str) -> tuple[str, str]:
    """Return the group and what it gives; a group without "=" gives what has its name."""
    group, between, given = entry.rpartition("=")
    return (group, given) if between else (given, given)


class OidcSettings(Group):
    """Let people sign in through an OpenID Connect provider, and take its tokens."""

    CHANGES: ClassVar[ChangeRule] = IGNORED

    issuer: str = Field("", description="Address of the provider, as its tokens name it.")
    client_id: str = Field("", description="Name of Carrel at the provider.")
    client_secret: SecretStr | None = Field(
        None, description="Secret of Carrel at the provider, if any."
    )
    audience: list[str] = Field(
        default_factory=list,
        description="Audiences of programs' tokens; empty: the client's id; with commas.",
    )
    public_url: str = Field(
        "",
        description="Address of the page in browsers; empty: only programs use tokens.",
    )
    scopes: str = Field("openid profile email", description="Scopes to ask for.")
    user_claim: str = Field(
        "sub",
        min_length=1,
        description="Claim that names the user; never one that users may choose themselves.",
    )
    groups_claim: str = Field(
        "groups", min_length=1, description="Claim of the groups; dots lead into objects."
    )
    roles: list[str] = Field(
        default_factory=list,
        description="Roles by group, GROUP=ROLE or GROUP; with commas.",
    )
    tenants: list[str] = Field(
        default_factory=list, description="Tenants by group, GROUP=TENANT; with commas."
    )
    tenant: str = Field("default", description="Tenant of all others; empty: they are refused.")
    session_minutes: int = Field(
        60, ge=1, le=1440, description="How long a browser stays signed in."
    )

    @field_validator("issuer", "public_url")
    @classmethod
    def _is_safe(cls, url: str) -> str:
        parts = urlsplit(url)  # raises ValueError itself
        if url and (not is_secure(url) or parts.query or parts.fragment or "@" in parts.netloc):
            raise ValueError("an address is https://HOST/PATH; http only on this machine")
        return url

    @field_validator("roles", "tenants")
    @classmethod
    def _are_pairs(cls, entries: list[str]) -> list[str]:
        for one in entries:
            if not all(paired(one)):
                raise ValueError("an entry is GROUP=NAME, or a GROUP alone")
        return entries
