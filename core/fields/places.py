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
    insecure_permissions: bool = Field(
        False,
        description="Use a data directory that other users of the machine can read or write, as it"
        " is; without, it is closed to them, or refused.",
    )
    lock_wait_s: float = Field(
        1.0, ge=0, le=60, description="How long to wait for a data directory another process owns."
    )
    min_free_mb: int = Field(
        100, ge=0, description="Ingest refuses to start with less free disk than this."
    )
