"""Settings: serve many callers over HTTP from one process."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, SecretStr

JwtAlgorithm = Literal["HS256", "RS256", "ES256", "EdDSA"]


class ServingFields(BaseModel):
    """Serve many callers over HTTP from one process (`carrel serve`)."""

    serve_mode: Literal["default", "dev", "prod"] = Field(
        "default", description="What `carrel serve` is for, which sets and checks other settings."
    )
    serve_host: str = Field("127.0.0.1", description="Address that `carrel serve` listens on.")
    serve_port: int = Field(8400, ge=0, le=65535, description="Port; 0: any that is free.")
    serve_hosts: list[str] = Field(
        default_factory=list,
        description="Host names that requests may name, beside this machine's own; with commas.",
    )
    serve_origins: list[str] = Field(
        default_factory=list,
        description="Origins of other pages that may call from a browser (CORS); with commas.",
    )
    serve_anonymous_roles: list[str] = Field(
        default_factory=lambda: ["writer"],
        description="Roles of callers without a key under --allow-anonymous; with commas.",
    )
    serve_writer_roles: list[str] = Field(
        default_factory=lambda: ["writer", "admin"],
        description="Roles that may upload documents; with commas.",
    )
    serve_admin_role: str = Field(
        "admin", min_length=1, description="Role that reads metrics and its tenant's feedback."
    )
    serve_operator_tenant: str = Field(
        "",
        description="Tenant whose admins may have the settings read again over HTTP; empty: none.",
    )
    serve_log_level: Literal["debug", "info", "warning", "error"] = Field(
        "warning", description="Least level that is logged; requests are info."
    )
    serve_log_format: Literal["json", "text"] = Field(
        "json", description="How a line of the log is written."
    )
    otel_endpoint: str = Field(
        "",
        description="URL of an OTLP/HTTP receiver of traces; empty: OTEL_EXPORTER_OTLP_ENDPOINT.",
    )
    serve_threads: int = Field(
        0,
        ge=0,
        le=256,
        description="Questions worked on at once; 0: as many as the chat model serves, at least"
        " two for each processor.",
    )
    serve_search_threads: int = Field(2, ge=1, le=256, description="Searches worked on at once.")
    serve_caller_threads: int = Field(
        2, ge=1, le=256, description="Questions, and searches, of one caller worked on at once."
    )
    serve_shared_threads: int = Field(
        1,
        ge=1,
        le=256,
        description="The same while other callers are served; what has begun goes on.",
    )
    serve_waiting: int = Field(64, ge=0, description="Questions, and searches, that may wait.")
    serve_caller_waiting: int = Field(
        16, ge=0, description="Questions, and searches, of one caller that may wait."
    )
    serve_retry_seconds: int = Field(
        2, ge=1, description="When to try again, as told to a caller who is turned away."
    )
    serve_stop_seconds: float = Field(
        10, ge=0, description="How long running questions may go on when the server stops."
    )
    serve_cancel_seconds: float = Field(
        5, ge=0, description="How long to wait for questions to notice that they are cancelled."
    )
    serve_body_bytes: int = Field(
        1_000_000, ge=1000, description="Largest body of a request other than an upload."
    )
    serve_upload_bytes: int = Field(
        50_000_000, ge=1000, description="Largest document that may be uploaded."
    )
    serve_header_seconds: float = Field(
        10, gt=0, description="Longest time until the head of a request has arrived."
    )
    serve_body_seconds: float = Field(
        60, gt=0, description="Longest time that a body may take to arrive."
    )
    serve_idle_seconds: int = Field(
        15, ge=1, description="How long a connection may stay open between two requests."
    )
    serve_connections: int = Field(
        1000, ge=1, description="Connections at once; others are turned away."
    )
    serve_ping_seconds: int = Field(
        15, ge=1, description="Time between two signs of life in a stream."
    )
    serve_send_seconds: float = Field(
        30, gt=0, description="How long a client may take to accept a piece of a stream."
    )
    serve_commands: int = Field(
        8,
        ge=0,
        le=100,
        description="Commands of the command line that the server runs at once; 0: it takes none.",
    )
    serve_command_bytes: int = Field(
        4_000_000, ge=10_000, description="Longest message of the command line to its server."
    )
    metrics_samples: int = Field(
        1000, ge=10, le=100_000, description="Latest requests, or steps, that percentiles are of."
    )
    serve_jobs: int = Field(20, ge=1, description="Uploads of one tenant that may wait.")
    serve_jobs_kept: int = Field(
        1000, ge=0, description="Ended uploads and deletions of one tenant that stay listed."
    )
    serve_job_attempts: int = Field(
        2, ge=1, description="How often an upload may be at work when the server dies."
    )
    jwt_key: SecretStr | None = Field(
        None, description="Secret (HS256) that signed tokens are checked with."
    )
    jwt_public_key: Path | None = Field(
        None, description="PEM file of the public key that signed tokens are checked with."
    )
    jwt_algorithm: JwtAlgorithm = Field(
        "HS256", description="The one algorithm that signed tokens may use."
    )
    jwt_audience: str = Field("", description="Audience that a token must name.")
    jwt_issuer: str = Field("", description="Issuer that a token must name.")
    jwt_leeway_seconds: int = Field(
        60, ge=0, le=600, description="Difference between clocks that an expiry tolerates."
    )
