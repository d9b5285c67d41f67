"""Settings: conversations that are kept, and questions that are asked back."""

from __future__ import annotations

from pydantic import BaseModel, Field


class ConversationFields(BaseModel):
    """Keep conversations, and ask back where a question cannot be answered as it is."""

    conversation_title_chars: int = Field(
        80, ge=10, le=400, description="Longest title of a conversation, cut from its question."
    )
    max_clarifications: int = Field(
        1, ge=0, le=5, description="Times that one question may be asked back; 0: never."
    )
    clarification_options: int = Field(
        4, ge=1, le=20, description="Most documents that a clarifying question offers."
    )
    clarification_option_chars: int = Field(
        80, ge=10, le=400, description="Longest title that a clarifying question offers."
    )
