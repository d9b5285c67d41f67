"""Settings: say how a data directory is kept, erased and backed up."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from core.fields.group import IGNORED, LIVE, Group


class StorageSettings(Group):
    """Say how a data directory is kept, erased and backed up."""

    insecure_permissions: Annotated[bool, IGNORED] = Field(
        False,
        description="Use a data directory that other users of the machine can read or write, as it"
        " is; without, it is closed to them, or refused.",
    )
    lock_wait_s: Annotated[float, IGNORED] = Field(
        1.0, ge=0, le=60, description="How long to wait for a data directory another process owns."
    )
    min_free_mb: Annotated[int, LIVE] = Field(
        100, ge=0, description="Ingest refuses to start with less free disk than this."
    )
    erase_wait_s: float = Field(
        30, ge=0, le=600, description="How long an erasure waits for readers of a database's log."
    )
    backup_max_gb: float = Field(
        100, gt=0, le=100_000, description="Largest backup that is restored, unpacked, in GB."
    )
