"""Settings: limit what each caller of a server may use, and keep a record of it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field, SecretStr

QuestionText = Literal["none", "hash", "text"]


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
    audit: bool = Field(
        True, description="Keep a record of logins, retrievals, answers, uploads and keys."
    )
    audit_questions: QuestionText = Field(
        "none",
        description="What the record holds of a question: nothing, its keyed hash, or its text.",
    )
    audit_days: int = Field(
        0, ge=0, le=36_500, description="Days that the record is kept; 0: for ever."
    )
    audit_login_minutes: int = Field(
        60, ge=1, description="Time after which the use of a key is recorded as a login again."
    )
    audit_linger_ms: int = Field(
        1000, ge=0, le=10_000, description="How long rows that nobody waits for are gathered."
    )
    audit_key: SecretStr | None = Field(
        None, description="Secret that audit rows are signed with; else a file in the data."
    )
