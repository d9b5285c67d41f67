"""Settings: say where things are kept."""

from __future__ import annotations

from pathlib import Path

import platformdirs
from pydantic import BaseModel, Field

from core.environment import default_data


def _cache_dir() -> Path:
    return Path(platformdirs.user_cache_dir("carrel"))


class PlaceFields(BaseModel):
    """Say where things are kept."""

    data: Path = Field(default_factory=default_data, description="Data directory.")
    cache: Path = Field(default_factory=_cache_dir, description="Cache for exported models.")
    lock_wait_s: float = Field(
        1.0, ge=0, le=60, description="How long to wait for a data directory another process owns."
    )
    min_free_mb: int = Field(
        100, ge=0, description="Ingest refuses to start with less free disk than this."
    )
