"""Settings: choose the models."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class ModelFields(BaseModel):
    """Choose the models."""

    embedder: str = Field(
        "embedded",
        min_length=1,
        description="'embedded' (multilingual-e5-small), 'embedded-en' (all-MiniLM-L6-v2, the fast"
        " choice for English alone), a model folder or a cached hub name.",
    )
    embedder_languages: list[str] | None = Field(
        None,
        description="Languages another embedder serves (ISO 639-1); unset: as the model table says,"
        " any for models it does not know.",
    )
    embedder_query_prompt: str | None = Field(
        None, description="Put before each question; unset: as the model's files or table say."
    )
    embedder_passage_prompt: str | None = Field(
        None, description="Put before each passage; unset: as the model's files or table say."
    )
    embedder_second: str = Field(
        "none",
        min_length=1,
        description="A second embedder that votes beside the first: 'none' or as 'embedder'.",
    )
    embedder_backend: Literal["auto", "onnx", "torch"] = Field(
        "auto",
        description="What runs embedders and re-ranker; auto: ONNX where it agrees with torch.",
    )
    embedder_threads: int = Field(2, ge=1, le=64, description="Threads of embedders and re-ranker.")
    embedder_batch: int = Field(16, ge=1, le=1024, description="Texts per embedding batch.")
    embedder_cache: int = Field(
        10_000, ge=1, description="Vectors of questions and sentences that memory holds at most."
    )
    reranker: str = Field(
        "none",
        min_length=1,
        description="Cross-encoder that re-ranks: 'none', a model folder or a cached hub name.",
    )
    reranker_batch: int = Field(16, ge=1, le=1024, description="Pairs per re-ranking batch.")
    reranker_max_tokens: int = Field(
        512, ge=16, le=32768, description="Tokens of question and passage that are read at most."
    )
