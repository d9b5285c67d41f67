"""Settings: say how the memory-mapped search segments are built and used."""

from __future__ import annotations

from pydantic import BaseModel, Field


class SegmentFields(BaseModel):
    """Say how the memory-mapped search segments are built and used."""

    bm25_k1: float = Field(1.5, ge=0, le=10, description="How soon repeated words stop to count.")
    bm25_b: float = Field(0.75, ge=0, le=1, description="How much long chunks are marked down.")
    segment_min_rows: int = Field(
        500, ge=1, description="Collections with fewer chunks are indexed in memory, without files."
    )
    segment_max_new_share: float = Field(
        0.3, ge=0, le=1, description="With more new chunks than this share, FTS5 answers for words."
    )
    segment_rebuild_share: float = Field(
        0.1, ge=0, le=1, description="A segment with more new and deleted chunks is built anew."
    )
    segment_rebuild_min_rows: int = Field(
        100, ge=0, description="Fewer new and deleted chunks than this never cause a rebuild."
    )
    segment_gather_share: float = Field(
        0.1, ge=0, le=1, description="Vectors of a smaller visible share are picked, not scanned."
    )
    segment_masks: int = Field(
        32, ge=1, le=10_000, description="Permission masks remembered per collection."
    )
    segment_sample_rows: int = Field(
        20_000, ge=1, description="Chunks whose cosines are averaged where not all are scanned."
    )
