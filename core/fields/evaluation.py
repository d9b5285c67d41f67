"""Settings: say how the retrieval of a collection is measured."""

from __future__ import annotations

from pydantic import BaseModel, Field


class EvaluationFields(BaseModel):
    """Say how the retrieval of a collection is measured."""

    eval_depth: int = Field(
        300, ge=100, le=10_000, description="Chunks that `eval` ranks documents by."
    )
    eval_warmup: int = Field(
        3, ge=0, le=100, description="Searches before the first one that `eval` times."
    )
    eval_resamples: int = Field(
        10_000, ge=100, le=1_000_000, description="Resamples of an interval or a paired test."
    )
    eval_confidence: float = Field(
        0.95, gt=0.5, lt=1, description="Confidence of the intervals that `eval` gives."
    )
    eval_seed: int = Field(0, ge=0, description="Seed of the resamples and of shuffled sheets.")
