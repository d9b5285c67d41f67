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
    fusion: Literal["standardised", "min_max", "rrf"] = Field(
        "standardised",
        description="How channels are merged: by how far scores stand out from the collection,"
        " by min-max scores, or by reciprocal ranks.",
    )
    rrf_constant: int = Field(60, ge=1, description="Constant of reciprocal rank fusion.")
    weight_vector: float = Field(0.6, ge=0, le=1, description="Weight of the vector channel.")
    weight_text: float = Field(0.4, ge=0, le=1, description="Weight of the BM25 channel.")
    weights_by_kind: bool = Field(
        False, description="Weigh the channels by the kind of query; the next three settings."
    )
    weight_vector_general: float = Field(
        0.7, ge=0, le=1, description="Weight of the vector channel for other queries."
    )
    weight_vector_identifier: float = Field(
        0.6, ge=0, le=1, description="The same for queries that name an API (dots, snake_case)."
    )
    weight_vector_concept: float = Field(
        0.8, ge=0, le=1, description="The same for queries that ask what something is, how or why."
    )
    trust_vectors: bool = Field(
        True, description="Weigh the vector channel down where the search shows it is weak."
    )
    trust_min_rows: int = Field(
        50, ge=3, description="Visible chunks from which on the shape of scores tells anything."
    )
    trust_peak: float = Field(
        0.95, ge=0, description="Best hit, in multiples of chance, that earns no trust yet."
    )
    trust_peak_span: float = Field(0.3, gt=0, description="More than that which earns all trust.")
    trust_agreement: float = Field(
        0.05, ge=-1, le=1, description="Agreement with the best hits by words that earns none yet."
    )
    trust_agreement_span: float = Field(
        0.5, gt=0, description="More than that which earns all trust."
    )
    weak_distance: float = Field(
        0.99,
        ge=0,
        le=2,
        description="A best distance beyond this is weak: 1 - similarity, 1 for unrelated texts of"
        " the embedder, 0 for the same meaning.",
    )
    weak_weight_text: float = Field(
        0.6, ge=0, le=1, description="Weight of the BM25 channel when vectors are weak."
    )
    noisy_share: float = Field(
        0.5, gt=0, le=1, description="A word in more than this share of the chunks is noisy."
    )
    noisy_penalty: float = Field(
        0.5, ge=0, le=1, description="Weight of a noisy word beside others; 1 switches this off."
    )
    channel_sentences: bool = Field(
        True, description="Let a chunk's best sentence count as much as the whole chunk."
    )
    feedback: Literal["off", "gated", "always"] = Field(
        "off", description="Move the query's vector towards the best hits (Rocchio)."
    )
    feedback_hits: int = Field(3, ge=1, le=50, description="Best hits that feedback reads.")
    feedback_weight: float = Field(
        0.4, gt=0, le=2, description="Weight of those hits against the query."
    )
    feedback_agreement: float = Field(
        0.7, ge=0, le=1, description="The gate of feedback: the channels agree at least this far."
    )
    feedback_peak: float = Field(
        1.2, gt=0, description="The gate of feedback: the best hit stands out less than this."
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
