"""A report on the quality of a collection, as data."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

# "left out": not found by searches, and why; "problem": likely wrong; "note": worth a look.
Level = Literal["left out", "problem", "note"]


class Spread(BaseModel):
    """Say how a number spreads: the bars are (from, to, count), the last one has all above."""

    model_config = ConfigDict(frozen=True)

    count: int = 0
    least: int = 0
    median: int = 0
    mean: float = 0.0
    most: int = 0
    bars: list[tuple[int, int, int]] = Field(default_factory=list)


class QualityFinding(BaseModel):
    """Name one thing found: how many `of` what, examples by id, and what to do about it."""

    model_config = ConfigDict(frozen=True)

    code: str
    level: Level
    count: int
    of: int
    what: str
    examples: list[str]
    advice: str

    @property
    def share(self) -> float:
        """Return the share of what was looked at, 0..1."""
        return self.count / self.of if self.of else 0.0


class QualityReport(BaseModel):
    """Hold the findings on one collection; lengths are in characters."""

    model_config = ConfigDict(frozen=True)

    tenant: str
    collection: str
    profile: str
    files: int
    records: int
    texts: int
    linked: int
    chunks: int
    kinds: dict[str, int]
    languages: dict[str, int]
    annotation_lengths: Spread
    chunk_lengths: Spread
    sentence_lengths: Spread
    findings: list[QualityFinding]
    seconds: float
