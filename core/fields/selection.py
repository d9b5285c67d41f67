"""Settings: say how ranked evidence is re-ranked, cut and widened; a switch per stage."""

from __future__ import annotations

from pydantic import BaseModel, Field


class SelectionFields(BaseModel):
    """Say how ranked evidence is re-ranked, cut and widened."""

    stage_rerank: bool = Field(
        True,
        description="Re-rank the best hits with the cross-encoder, where `reranker` names one.",
    )
    rerank_pool: int = Field(50, ge=1, le=1000, description="Hits the cross-encoder reads.")
    rerank_threshold: float = Field(
        0.0, ge=0, le=1, description="Re-ranked hits below this score are dropped; 0 keeps all."
    )
    rerank_min_ms: int = Field(
        500, ge=0, description="With less time left than this, re-ranking is skipped."
    )
    stage_factors: bool = Field(
        True, description="Re-rank by version, headings, code, index pages and API names."
    )
    factor_version_exact: float = Field(
        0.15, ge=-1, le=1, description="Added when the version is the one asked for."
    )
    factor_version_near: float = Field(
        -0.05, ge=-1, le=1, description="Added when the version is a neighbour of that."
    )
    factor_version_far: float = Field(
        -0.20, ge=-1, le=1, description="Added when the version is a distant one."
    )
    version_near: int = Field(
        1, ge=0, le=100, description="Minor releases between neighbouring versions at most."
    )
    factor_code: float = Field(
        0.05, ge=-1, le=1, description="Added to code when code is asked for, by its share."
    )
    factor_code_other: float = Field(
        -0.03, ge=-1, le=1, description="Added to code when it is not, by its share."
    )
    factor_index_page: float = Field(
        -0.10, ge=-1, le=1, description="Added to lists of links and tables of contents."
    )
    index_page_lines: int = Field(
        8, ge=2, description="A list of links has at least this many lines."
    )
    index_page_width: int = Field(
        60, ge=10, description="Lines of a list of links have at most this many characters."
    )
    index_page_share: float = Field(
        0.8, gt=0, le=1, description="Share of such lines that makes a list of links."
    )
    factor_api_name: float = Field(
        0.05, ge=-1, le=1, description="Added when an API name of the question is there exactly."
    )
    factor_heading: float = Field(
        0.3, ge=-1, le=1, description="Added when a title or a keyword is the query, word by word."
    )
    stage_near_duplicates: bool = Field(True, description="Drop what repeats better evidence.")
    near_duplicate: float = Field(
        0.9, gt=0, le=1, description="Jaccard similarity of texts that say the same."
    )
    near_duplicate_pool: int = Field(
        50, ge=1, le=1000, description="Best hits among which repeats are looked for."
    )
    near_duplicate_words: int = Field(
        3, ge=1, le=20, description="Words in a row that are compared at a time."
    )
    stage_coverage: bool = Field(False, description="Choose evidence that covers the question.")
    coverage_alpha: float = Field(
        0.5, ge=0, le=1, description="Weight of the mean of the chosen against the best of them."
    )
    coverage_min_gain: float = Field(
        0.005, ge=0, le=1, description="Coverage another piece of evidence must add."
    )
    coverage_k: int = Field(10, ge=1, le=100, description="Evidence chosen by coverage at most.")
    stage_token_budget: bool = Field(True, description="Cut evidence to the token budget.")
    context_tokens: int = Field(
        12_000, ge=100, description="Tokens of the evidence of one search at most."
    )
    context_window: int = Field(
        0, ge=0, description="Tokens the model that answers can read; 0 when none reads."
    )
    context_share: float = Field(
        0.7, gt=0, le=1, description="Share of that window which evidence may fill."
    )
    stage_announced: bool = Field(
        True, description="Add the chunk that a hit announces by a colon at its end."
    )
    stage_neighbours: bool = Field(False, description="Add the chunks around the best hits.")
    neighbours_best: int = Field(3, ge=1, le=100, description="Hits that get their neighbours.")
    neighbours_reach: int = Field(1, ge=1, le=10, description="Neighbours on either side.")
    channel_entities: bool = Field(
        False, description="Let the names in a question rank candidates as one more channel."
    )
    weight_entities: float = Field(
        0.2, ge=0, le=1, description="Added to evidence that names all entities of the question."
    )
    entity_model: str = Field(
        "auto",
        min_length=1,
        description="'auto' (an installed spaCy pipeline, else rules), 'rules', or a pipeline.",
    )
