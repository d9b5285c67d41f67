"""Settings: say what is remembered, for how long, and where."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, field_validator

REDIS_SCHEMES = ("redis", "rediss", "unix")


class CacheFields(BaseModel):
    """Say what is remembered, for how long, and where; a time of 0 remembers nothing."""

    cache_embedding_hours: float = Field(
        24, ge=0, le=8760, description="How long vectors of questions and sentences are remembered."
    )
    cache_rewrite_hours: float = Field(
        1,
        ge=0,
        le=8760,
        description="How long what a chat model makes of a question is remembered.",
    )
    cache_result_minutes: float = Field(
        15,
        ge=0,
        le=525_600,
        description="How long the results of a caller's search are remembered.",
    )
    cache_answer_minutes: float = Field(
        15,
        ge=0,
        le=525_600,
        description="How long `carrel serve` gives a caller the same answer to the same question.",
    )
    cache_mb: float = Field(
        32,
        gt=0,
        le=65_536,
        description="Memory for remembered results, rewrites and answers, each.",
    )
    cache_redis_url: str = Field(
        "",
        description="Redis that keeps all of this beside this process's memory:"
        " redis://HOST:PORT/DB, rediss://… or unix:///PATH; empty: none.",
    )
    cache_redis_password: SecretStr | None = Field(None, description="Password of that Redis.")
    cache_redis_seconds: float = Field(
        0.2, gt=0, le=60, description="How long Redis may take to connect, or to reply."
    )
    cache_redis_retry_seconds: float = Field(
        10, ge=0, le=3600, description="How long a Redis that failed is left alone."
    )

    @field_validator("cache_redis_url")
    @classmethod
    def _names_a_redis(cls, url: str) -> str:
        if not url:
            return url
        parts = urlsplit(url)  # raises ValueError itself
        if parts.scheme not in REDIS_SCHEMES or not (parts.hostname or parts.path):
            raise ValueError("a Redis is named like redis://localhost:6379/0 or unix:///run/redis")
        if "@" in parts.netloc:  # URLs are shown and kept
            raise ValueError("a URL holds no password; set CARREL_CACHE_REDIS_PASSWORD to it")
        return url
