"""Settings: say how a search follows names from its best hits to other chunks."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from core.fields.group import LIVE, ChangeRule, Group


class LinksSettings(Group):
    """Say how a search follows names from its best hits to other chunks."""

    CHANGES: ClassVar[ChangeRule] = LIVE

    channel: bool = Field(
        False, description="Follow the names in the best hits to chunks that say them too."
    )
    agent: bool = Field(
        True, description="The same in the tool `search` and in scoped tools made of it."
    )
    seeds: int = Field(3, ge=1, le=20, description="Best hits whose names are followed.")
    weight: float = Field(
        0.7, ge=0, le=5, description="What the best link adds, as a share of the best score."
    )
