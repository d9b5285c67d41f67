"""How much one file may cost."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class LoadLimits(BaseModel):
    """Bound what loading one file may take.

    `max_characters` counts the text of one document or record; `timeout_s` and `memory_mb` hold for
    the formats parsed in a child process (PDF, DOCX).
    """

    model_config = ConfigDict(frozen=True)

    max_file_mb: float = Field(gt=0)
    max_pages: int = Field(gt=0)
    max_characters: int = Field(gt=0)
    timeout_s: float = Field(gt=0)
    memory_mb: int = Field(gt=0)
