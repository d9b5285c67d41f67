"""Settings: say what is remembered, for how long, and where; a time of 0 remembers nothing."""

from __future__ import annotations

from typing import ClassVar
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from core.fields.group import REFUSED, ChangeRule, Group

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
