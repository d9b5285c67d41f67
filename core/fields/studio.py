"""Settings: name LangGraph Studio's one local user, whom no caller can change."""

from __future__ import annotations

from pydantic import Field

from core.fields.group import Group


class StudioSettings(Group):
    """Name LangGraph Studio's one local user, whom no caller can change."""

    collection: str = Field("default", description="Collection that Studio asks.")
    tenant: str = Field("default", description="Tenant of Studio's user.")
    user: str = Field("local", description="Name of Studio's user.")
    roles: list[str] = Field(
        default_factory=list, description="Roles of Studio's user, separated by commas."
    )
    clarify: bool = Field(
        False, description="Let runs in Studio ask back, which interrupts them until a reply."
    )
