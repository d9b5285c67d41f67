"""Settings: say how the retrieval of a collection is measured."""

from __future__ import annotations

from pydantic import Field

from core.fields.group import Group


class EvaluationSettings(Group):
    """Say how the retrieval of a collection is measured."""

    depth: int = Field(300, ge=100, le=10_000, description="Chunks that `eval` ranks documents by.")
    resamples: int = Field(
        10_000, ge=100, le=1_000_000, description="Resamples of an interval or a paired test."
    )
    seed: int = Field(0, ge=0, description="Seed of the resamples and of shuffled sheets.")
