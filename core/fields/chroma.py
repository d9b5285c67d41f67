"""Settings: say where Chroma is, for directories that have it as their search index."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from core.fields.group import REFUSED, ChangeRule, Group


class ChromaSettings(Group):
    """Say where Chroma is, for directories that have it as their search index."""

    CHANGES: ClassVar[ChangeRule] = REFUSED

    url: str = Field(
        "",
        description="Address of a Chroma server, as http://localhost:8000; empty for a folder in"
        " the data directory.",
    )
    timeout_s: float = Field(
        10, gt=0, le=600, description="Seconds a Chroma server may take to answer once."
    )
