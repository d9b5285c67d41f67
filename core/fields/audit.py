"""Settings: keep a record of what callers do."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, SecretStr

from core.fields.group import IGNORED, LIVE, LIVE_IGNORED, ChangeRule, Group

QuestionText = Literal["none", "hash", "text"]


class AuditSettings(Group):
    """Keep a record of what callers do."""

    CHANGES: ClassVar[ChangeRule] = LIVE

    enabled: Annotated[bool, LIVE_IGNORED] = Field(
        True, description="Keep a record of logins, retrievals, answers, uploads and keys."
    )
    questions: QuestionText = Field(
        "none",
        description="What the record holds of a question: nothing, its keyed hash, or its text.",
    )
    days: int = Field(0, ge=0, le=36_500, description="Days that the record is kept; 0: for ever.")
    key: Annotated[SecretStr | None, IGNORED] = Field(
        None, description="Secret that audit rows are signed with; else a file in the data."
    )
