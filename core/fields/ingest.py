"""Settings: say how documents are read and cut."""

from __future__ import annotations

from pydantic import BaseModel, Field


class IngestFields(BaseModel):
    """Say how documents are read and cut."""

    chunk_size: int = Field(1000, ge=100, le=32000, description="Characters per chunk at most.")
    chunk_overlap: int = Field(100, ge=0, description="Characters repeated between chunks.")
    min_text_words: int = Field(
        0, ge=0, description="Leave out full texts with fewer words (library profile: 200)."
    )
    max_file_mb: int = Field(64, ge=1, description="Largest file that is read, in MB.")
    max_pages: int = Field(5000, ge=1, description="Pages read of one document at most.")
    max_characters: int = Field(
        20_000_000, ge=1000, description="Characters read of one file at most."
    )
    parse_timeout_s: float = Field(60, gt=0, description="Time to parse one PDF or DOCX.")
    parse_memory_mb: int = Field(2048, ge=128, description="Memory to parse one PDF or DOCX.")
    ingest_batch: int = Field(256, ge=1, le=5000, description="Chunks per write to the catalogue.")
    vector_batch: int = Field(500, ge=1, le=500, description="Vectors per write to Chroma.")
