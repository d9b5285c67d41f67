"""Settings: say how the memory-mapped search segments are built and used."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from core.fields.group import REFUSED, ChangeRule, Group


class SegmentsSettings(Group):
    """Say how the memory-mapped search segments are built and used."""

    CHANGES: ClassVar[ChangeRule] = REFUSED

    min_rows: int = Field(
        500, ge=1, description="Collections with fewer chunks are indexed in memory, without files."
    )
    rebuild_min_rows: int = Field(
        100, ge=0, description="Fewer new and deleted chunks than this never cause a rebuild."
    )
