"""Settings: say how a data directory is checked for damage."""

from __future__ import annotations

from pydantic import Field

from core.fields.group import Group


class ChecksSettings(Group):
    """Say how a data directory is checked for damage."""

    interval_s: float = Field(
        600, ge=1, le=86_400, description="Seconds between two self-checks of `carrel serve`."
    )
