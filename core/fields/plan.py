"""Settings: bound plans of several questions and their operations."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from core.fields.group import LIVE, ChangeRule, Group


class PlanSettings(Group):
    """Bound plans of several questions and their operations."""

    CHANGES: ClassVar[ChangeRule] = LIVE

    in_degree: int = Field(
        3, ge=1, le=9, description="Questions that one question of a plan may depend on."
    )
    operations: int = Field(40, ge=3, le=200, description="Operations of one plan.")
    top_k: int = Field(
        50, ge=1, le=100, description="Hits that one operation of a plan may ask for."
    )
    fan_out: int = Field(
        3, ge=1, le=10, description="Values or entities that one step of a plan may follow."
    )
    max_entities: int = Field(
        5, ge=1, le=50, description="Entities that one step of a plan may take from its evidence."
    )
    max_evidence: int = Field(
        20, ge=1, le=200, description="Pieces of evidence that a plan may give to its answer."
    )
    slot_chars: int = Field(
        200, ge=10, le=1000, description="Longest value that a slot of a plan may hold."
    )
    max_backtracks: int = Field(
        1, ge=0, le=5, description="Times that a run may undo the values of a slot and try others."
    )
    max_replans: int = Field(
        1, ge=0, le=5, description="Times that a plan of several questions may be extended."
    )
    max_hops: int = Field(
        2, ge=0, le=5, description="Searches for what a plain question's evidence leaves open."
    )
    plain_confidence: float = Field(
        0.6,
        ge=0,
        le=1,
        description="A plain question this sure is not planned with --pipeline auto.",
    )
