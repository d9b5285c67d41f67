"""Settings: speak the protocols of other clients (LangServe, OpenAI)."""

from __future__ import annotations

from pydantic import BaseModel, Field


class ProtocolFields(BaseModel):
    """Speak the protocols of other clients (LangServe, OpenAI)."""

    langserve_batch: int = Field(
        64, ge=1, le=1000, description="Inputs that one LangServe batch may hold."
    )
    langserve_batch_at_once: int = Field(
        2, ge=1, le=64, description="Inputs of one LangServe batch that are answered at once."
    )
    langserve_config_chars: int = Field(
        20_000, ge=100, le=1_000_000, description="Longest configuration in a LangServe path."
    )
    openai_sources: bool = Field(
        False, description="End answers to OpenAI clients with a list of their sources."
    )
