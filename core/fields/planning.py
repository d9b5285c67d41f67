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
    plan_slot_chars: int = Field(
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
    hop_coverage: float = Field(
        0.9,
        ge=0,
        le=1,
        description="A question whose evidence covers this share of its words needs no other hop.",
    )
    plain_confidence: float = Field(
        0.6,
        ge=0,
        le=1,
        description="A plain question this sure is not planned with --pipeline auto.",
    )
    plan_file_kb: int = Field(256, ge=1, le=4096, description="Largest plan file read, in KiB.")
    plan_file_depth: int = Field(
        16, ge=4, le=64, description="How deep lists and objects of a plan file may be nested."
    )
