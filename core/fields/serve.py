"""Settings of serving: callers, the record of what they do, caches, and checks meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from core.fields.group import AT_START, IGNORED, LIVE, LIVE_IGNORED, REFUSED, ChangeRule, Group

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
    groups_file: Path | None = Field(
        None,
        description="CSV with the header user,group of groups beside those of a token; a change"
        " counts at the next token.",
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


class ServeSettings(Group):
    """Serve many callers over HTTP from one process (`carrel serve`)."""

    CHANGES: ClassVar[ChangeRule] = IGNORED

    mode: Literal["default", "dev", "prod"] = Field(
        "default", description="What `carrel serve` is for, which sets and checks other settings."
    )
    host: str = Field("127.0.0.1", description="Address that `carrel serve` listens on.")
    port: int = Field(8400, ge=0, le=65535, description="Port; 0: any that is free.")
    hosts: list[str] = Field(
        default_factory=list,
        description="Host names that requests may name, beside this machine's own; with commas.",
    )
    origins: list[str] = Field(
        default_factory=list,
        description="Origins of other pages that may call from a browser (CORS); with commas.",
    )
    anonymous_roles: list[str] = Field(
        default_factory=lambda: ["writer"],
        description="Roles of callers without a key under --allow-anonymous; with commas.",
    )
    writer_roles: Annotated[list[str], LIVE_IGNORED] = Field(
        default_factory=lambda: ["writer", "admin"],
        description="Roles that may upload documents; with commas.",
    )
    admin_role: Annotated[str, LIVE_IGNORED] = Field(
        "admin", min_length=1, description="Role that reads metrics and its tenant's feedback."
    )
    operator_tenant: str = Field(
        "",
        description="Tenant whose admins may have the settings read again over HTTP; empty: none.",
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], LIVE_IGNORED] = Field(
        "warning", description="Least level that is logged; requests are info."
    )
    log_format: Literal["json", "text"] = Field(
        "json", description="How a line of the log is written."
    )
    otel_endpoint: str = Field(
        "",
        description="URL of an OTLP/HTTP receiver of traces; empty: OTEL_EXPORTER_OTLP_ENDPOINT.",
    )
    threads: int = Field(
        0,
        ge=0,
        le=256,
        description="Questions worked on at once; 0: as many as the chat model serves, at least"
        " two for each processor.",
    )
    search_threads: int = Field(2, ge=1, le=256, description="Searches worked on at once.")
    caller_threads: Annotated[int, LIVE_IGNORED] = Field(
        2, ge=1, le=256, description="Questions, and searches, of one caller worked on at once."
    )
    shared_threads: Annotated[int, LIVE_IGNORED] = Field(
        1,
        ge=1,
        le=256,
        description="The same while other callers are served; what has begun goes on.",
    )
    waiting: Annotated[int, LIVE_IGNORED] = Field(
        64, ge=0, description="Questions, and searches, that may wait."
    )
    caller_waiting: Annotated[int, LIVE_IGNORED] = Field(
        16, ge=0, description="Questions, and searches, of one caller that may wait."
    )
    stop_seconds: float = Field(
        10, ge=0, description="How long running questions may go on when the server stops."
    )
    body_bytes: Annotated[int, LIVE_IGNORED] = Field(
        1_000_000, ge=1000, description="Largest body of a request other than an upload."
    )
    upload_bytes: Annotated[int, LIVE_IGNORED] = Field(
        50_000_000, ge=1000, description="Largest document that may be uploaded."
    )
    header_seconds: float = Field(
        10, gt=0, description="Longest time until the head of a request has arrived."
    )
    body_seconds: Annotated[float, LIVE_IGNORED] = Field(
        60, gt=0, description="Longest time that a body may take to arrive."
    )
    idle_seconds: int = Field(
        15, ge=1, description="How long a connection may stay open between two requests."
    )
    connections: int = Field(1000, ge=1, description="Connections at once; others are turned away.")
    commands: int = Field(
        8,
        ge=0,
        le=100,
        description="Commands of the command line that the server runs at once; 0: it takes none.",
    )
    jobs: Annotated[int, LIVE_IGNORED] = Field(
        20, ge=1, description="Uploads of one tenant that may wait."
    )
    works: bool = Field(
        True, description="Take jobs, also beside workers of a catalogue in PostgreSQL."
    )
    ask_rate: Annotated[int, LIVE_IGNORED] = Field(
        120, ge=0, description="Questions that a caller may ask in a minute; 0: any number."
    )
    rate: Annotated[int, LIVE_IGNORED] = Field(
        1200, ge=0, description="Other requests of a caller in a minute; 0: any number."
    )
    tokens_per_day: Annotated[int, LIVE_IGNORED] = Field(
        5_000_000,
        ge=0,
        description="Tokens of the chat model that a caller may use in 24 hours; 0: any number.",
    )
    wrong_keys: Annotated[int, LIVE_IGNORED] = Field(
        30,
        ge=0,
        description="Wrong keys of one address in a minute before others are 429; 0: any number.",
    )
    openai_sources: Annotated[bool, AT_START] = Field(
        False, description="End answers to OpenAI clients with a list of their sources."
    )


JwtAlgorithm = Literal["HS256", "RS256", "ES256", "EdDSA"]


class JwtSettings(Group):
    """Say which signed tokens are good."""

    CHANGES: ClassVar[ChangeRule] = IGNORED

    key: SecretStr | None = Field(
        None, description="Secret (HS256) that signed tokens are checked with."
    )
    public_key: Path | None = Field(
        None, description="PEM file of the public key that signed tokens are checked with."
    )
    algorithm: JwtAlgorithm = Field(
        "HS256", description="The one algorithm that signed tokens may use."
    )
    audience: str = Field("", description="Audience that a token must name.")
    issuer: str = Field("", description="Issuer that a token must name.")
    leeway_seconds: int = Field(
        60, ge=0, le=600, description="Difference between clocks that an expiry tolerates."
    )


QuestionText = Literal["none", "hash", "text"]


class AuditSettings(Group):
    """Keep a record of what callers do."""

    CHANGES: ClassVar[ChangeRule] = LIVE

    enabled: Annotated[bool, LIVE_IGNORED] = Field(
        True, description="Keep a record of logins, retrievals, answers, uploads and keys."
    )
    questions: QuestionText = Field(
        "none",
        description="What the record holds of a question: nothing, its keyed hash, or its text.",
    )
    days: int = Field(0, ge=0, le=36_500, description="Days that the record is kept; 0: for ever.")
    key: Annotated[SecretStr | None, IGNORED] = Field(
        None, description="Secret that audit rows are signed with; else a file in the data."
    )


REDIS_SCHEMES = ("redis", "rediss", "unix")


class CachingSettings(Group):
    """Say what is remembered, for how long, and where; a time of 0 remembers nothing."""

    CHANGES: ClassVar[ChangeRule] = REFUSED

    embedding_hours: float = Field(
        24, ge=0, le=8760, description="How long vectors of questions and sentences are remembered."
    )
    rewrite_hours: float = Field(
        1,
        ge=0,
        le=8760,
        description="How long what a chat model makes of a question is remembered.",
    )
    result_minutes: float = Field(
        15,
        ge=0,
        le=525_600,
        description="How long the results of a caller's search are remembered.",
    )
    answer_minutes: float = Field(
        15,
        ge=0,
        le=525_600,
        description="How long `carrel serve` gives a caller the same answer to the same question.",
    )
    mb: float = Field(
        16,
        gt=0,
        le=65_536,
        description="Memory for remembered results, rewrites and answers, each.",
    )
    redis_url: str = Field(
        "",
        description="Redis that keeps all of this beside this process's memory:"
        " redis://HOST:PORT/DB, rediss://… or unix:///PATH; empty: none.",
    )
    redis_password: SecretStr | None = Field(None, description="Password of that Redis.")
    redis_seconds: float = Field(
        0.2, gt=0, le=60, description="How long Redis may take to connect, or to reply."
    )

    @field_validator("redis_url")
    @classmethod
    def _names_a_redis(cls, url: str) -> str:
        if not url:
            return url
        parts = urlsplit(url)  # raises ValueError itself
        if parts.scheme not in REDIS_SCHEMES or not (parts.hostname or parts.path):
            raise ValueError("a Redis is named like redis://localhost:6379/0 or unix:///run/redis")
        if "@" in parts.netloc:  # URLs are shown and kept
            raise ValueError("a URL holds no password; set CARREL_CACHING__REDIS_PASSWORD to it")
        return url


class ChecksSettings(Group):
    """Say how a data directory is checked for damage."""

    interval_s: float = Field(
        600, ge=1, le=86_400, description="Seconds between two self-checks of `carrel serve`."
    )


class StudioSettings(Group):
    """Name LangGraph Studio's one local user, whom no caller can change."""

    collection: str = Field("default", description="Collection that Studio asks.")
    tenant: str = Field("default", description="Tenant of Studio's user.")
    user: str = Field("local", description="Name of Studio's user.")
    roles: list[str] = Field(
        default_factory=list, description="Roles of Studio's user, separated by commas."
    )
    clarify: bool = Field(
        False, description="Let runs in Studio ask back, which interrupts them until a reply."
    )
