"""Settings: say how evidence is searched and ranked."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class RetrievalFields(BaseModel):
    """Say how evidence is searched and ranked."""

    top_k: int = Field(10, ge=1, le=100, description="Results of a search.")
    pool: int = Field(100, ge=1, le=1000, description="Candidates each channel gives to fusion.")
    vector_k: int = Field(
        5, ge=1, description="Vector hits of a tool that searches by vectors alone."
    )
    vector_k_extended: int = Field(15, ge=1, description="The same after a rewrite.")
    text_k: int = Field(5, ge=1, description="BM25 hits of a tool that searches by words alone.")
    text_k_extended: int = Field(10, ge=1, description="The same after a rewrite.")
    records_k: int = Field(5, ge=1, description="Rows of a record query.")
    records_k_extended: int = Field(15, ge=1, description="The same after a rewrite.")
    tool_cache: int = Field(
        64, ge=0, le=10_000, description="Results of tool calls that a run remembers; 0 for none."
    )
    rrf_constant: int = Field(60, ge=1, description="Constant of reciprocal rank fusion.")
    weight_vector: float = Field(
        0.6, ge=0, le=1, description="Weight of the vector channel; BM25 has the rest."
    )
    channel_sentences: bool = Field(
        True, description="Let a chunk's best sentence count as much as the whole chunk."
    )
    query2doc_distance: float = Field(
        0.6, ge=0, le=2, description="A best distance beyond this lets a model write a passage."
    )
    hyde_distance: float = Field(
        0.99, ge=0, le=2, description="One beyond this lets that passage stand for the query."
    )
    spare: int = Field(
        10, ge=0, le=100, description="Hits beyond those asked for that stages may choose from."
    )
    text_cutoff: float = Field(
        0.3, ge=0, le=1, description="BM25 hits below this share of the best hit are dropped."
    )
    text_cutoff_alone: float = Field(
        0.5, ge=0, le=1, description="The same when vectors should be there and are not."
    )
    bm25_title: float = Field(3.0, gt=0, description="BM25 weight of the title.")
    bm25_keywords: float = Field(2.0, gt=0, description="BM25 weight of the keywords.")
    bm25_section: float = Field(2.0, gt=0, description="BM25 weight of the heading path.")
    vector_exact_limit: int = Field(
        1_000_000, ge=0, description="Collections up to this many chunks are scanned exactly."
    )
    sql_timeout_s: float = Field(
        1.0, gt=0, description="Time a record query may take, within that of its run."
    )
    classic_k: int = Field(15, ge=1, le=1000, description="Hits that vote in the classic pipeline.")
    classic_vote: Literal["hits", "score"] = Field(
        "hits", description="What elects the document of the classic pipeline."
    )
