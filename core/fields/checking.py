"""Settings: how a data directory is checked for damage."""

from __future__ import annotations

from pydantic import BaseModel, Field


class CheckFields(BaseModel):
    """Say how a data directory is checked for damage."""

    check_interval_s: float = Field(
        600, ge=1, le=86_400, description="Seconds between two self-checks of `carrel serve`."
    )
    check_sample: int = Field(
        8, ge=1, le=1000, description="Chunks of a collection that each self-check searches for."
    )
    check_words: int = Field(
        4, ge=1, le=64, description="Rarest words of a sampled chunk that must find it."
    )
    check_seal_mb: int = Field(
        256, ge=0, le=100_000, description="Files up to this size are sealed with a check sum."
    )
    check_missed_share: float = Field(
        0.25, ge=0, le=1, description="Share of its own vectors that Chroma may not find."
    )
    check_probe_s: float = Field(
        120, ge=1, le=3600, description="Seconds that the vector index may take to prove itself."
    )
