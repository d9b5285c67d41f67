"""Settings: say how ranked evidence is re-ranked, cut and widened."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from core.fields.group import LIVE, ChangeRule, Group


class SelectionSettings(Group):
    """Say how ranked evidence is re-ranked, cut and widened."""

    CHANGES: ClassVar[ChangeRule] = LIVE

    stage_rerank: bool = Field(
        True,
        description="Re-rank the best hits with the cross-encoder, where `reranker` names one.",
    )
    rerank_pool: int = Field(50, ge=1, le=1000, description="Hits the cross-encoder reads.")
    rerank_threshold: float = Field(
        0.0, ge=0, le=1, description="Re-ranked hits below this score are dropped; 0 keeps all."
    )
    stage_factors: bool = Field(
        True, description="Re-rank by version, headings, code, index pages and API names."
    )
    stage_near_duplicates: bool = Field(True, description="Drop what repeats better evidence.")
    near_duplicate: float = Field(
        0.9, gt=0, le=1, description="Jaccard similarity of texts that say the same."
    )
    stage_coverage: bool = Field(False, description="Choose evidence that covers the question.")
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
