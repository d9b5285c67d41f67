"""Settings: say how data is erased, backed up and restored."""

from __future__ import annotations

from pydantic import BaseModel, Field


class KeepingFields(BaseModel):
    """Say how data is erased, backed up and restored."""

    erase_wait_s: float = Field(
        30, ge=0, le=600, description="How long an erasure waits for readers of a database's log."
    )
    backup_max_gb: float = Field(
        100, gt=0, le=100_000, description="Largest backup that is restored, unpacked, in GB."
    )
