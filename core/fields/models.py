"""Settings: choose the models."""

from __future__ import annotations

from pydantic import BaseModel, Field


class ModelFields(BaseModel):
    """Choose the models."""

    embedder: str = Field(
        "embedded",
        min_length=1,
        description="'embedded' (all-MiniLM-L6-v2, English), a model folder or a cached hub name.",
    )
    embedder_languages: list[str] | None = Field(
        None, description="Languages another embedder serves (ISO 639-1); unset means any."
    )
    embedder_threads: int = Field(2, ge=1, le=64, description="Threads of the embedded model.")
    embedder_batch: int = Field(16, ge=1, le=1024, description="Texts per embedding batch.")
    embedder_cache: int = Field(
        4096, ge=1, description="Vectors of questions and sentences that are remembered."
    )
