"""Settings: limit what each caller of a server may use, and keep a record of it."""

from __future__ import annotations

from pydantic import BaseModel, Field


class GuardFields(BaseModel):
    """Limit what each caller of a server may use, and keep a record of it."""

    serve_ask_rate: int = Field(
        120, ge=0, description="Questions that a caller may ask in a minute; 0: any number."
    )
    serve_rate: int = Field(
        1200, ge=0, description="Other requests of a caller in a minute; 0: any number."
    )
    serve_tokens_per_day: int = Field(
        5_000_000,
        ge=0,
        description="Tokens of the chat model that a caller may use in 24 hours; 0: any number.",
    )
    serve_wrong_keys: int = Field(
        30,
        ge=0,
        description="Wrong keys of one address in a minute before others are 429; 0: any number.",
    )
