"""Settings: say how evidence is searched and ranked."""

from __future__ import annotations

from pydantic import BaseModel, Field


class RetrievalFields(BaseModel):
    """Say how evidence is searched and ranked."""

    top_k: int = Field(10, ge=1, le=100, description="Results of a search.")
    pool: int = Field(100, ge=1, le=1000, description="Candidates each channel gives to fusion.")
    vector_k: int = Field(5, ge=1, description="Vector candidates of a tool call.")
    vector_k_extended: int = Field(15, ge=1, description="The same after a rewrite.")
    text_k: int = Field(5, ge=1, description="BM25 candidates of a tool call.")
    text_k_extended: int = Field(10, ge=1, description="The same after a rewrite.")
    records_k: int = Field(5, ge=1, description="Rows of a record query.")
    records_k_extended: int = Field(15, ge=1, description="The same after a rewrite.")
    weight_vector: float = Field(0.6, ge=0, le=1, description="Weight of the vector channel.")
    weight_text: float = Field(0.4, ge=0, le=1, description="Weight of the BM25 channel.")
    text_cutoff: float = Field(
        0.3, ge=0, le=1, description="BM25 hits below this share of the best hit are dropped."
    )
    bm25_title: float = Field(3.0, gt=0, description="BM25 weight of the title.")
    bm25_keywords: float = Field(2.0, gt=0, description="BM25 weight of the keywords.")
    bm25_section: float = Field(2.0, gt=0, description="BM25 weight of the heading path.")
    vector_exact_limit: int = Field(
        20_000, ge=0, description="Collections up to this many chunks are scanned exactly."
    )
    sql_timeout_s: float = Field(1.0, gt=0, description="Time a record query may take.")
