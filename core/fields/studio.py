"""Settings: name LangGraph Studio's one local user, whom no caller can change."""

from __future__ import annotations

from pydantic import BaseModel, Field


class StudioFields(BaseModel):
    """Name LangGraph Studio's one local user, whom no caller can change."""

    studio_collection: str = Field("default", description="Collection that Studio asks.")
    studio_tenant: str = Field("default", description="Tenant of Studio's user.")
    studio_user: str = Field("local", description="Name of Studio's user.")
    studio_roles: list[str] = Field(
        default_factory=list, description="Roles of Studio's user, separated by commas."
    )
    studio_clarify: bool = Field(
        False, description="Let runs in Studio ask back, which interrupts them until a reply."
    )
