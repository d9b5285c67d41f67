"""Settings: bound plans of several questions and their operations."""

from __future__ import annotations

from pydantic import BaseModel, Field


class PlanningFields(BaseModel):
    """Bound plans of several questions and their operations."""

    plan_in_degree: int = Field(
        3, ge=1, le=9, description="Questions that one question of a plan may depend on."
    )
    plan_operations: int = Field(40, ge=3, le=200, description="Operations of one plan.")
    plan_top_k: int = Field(
        50, ge=1, le=100, description="Hits that one operation of a plan may ask for."
    )
    plan_fan_out: int = Field(
        3, ge=1, le=10, description="Values or entities that one step of a plan may follow."
    )
    plan_max_entities: int = Field(
        5, ge=1, le=50, description="Entities that one step of a plan may take from its evidence."
    )
    plan_threshold: float = Field(
        0.1,
        ge=0,
        le=1,
        description="Hits of an entity hop below this cross-encoder score are dropped, 0..1.",
    )
    plan_max_evidence: int = Field(
        20, ge=1, le=200, description="Pieces of evidence that a plan may give to its answer."
    )
    plan_file_kb: int = Field(256, ge=1, le=4096, description="Largest plan file read, in KiB.")
    plan_file_depth: int = Field(
        16, ge=4, le=64, description="How deep lists and objects of a plan file may be nested."
    )
