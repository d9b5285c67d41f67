"""Settings: say how evidence is graded and questions are answered."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from core.fields.group import AT_START, LIVE, ChangeRule, Group


class AnsweringSettings(Group):
    """Say how evidence is graded and questions are answered."""

    CHANGES: ClassVar[ChangeRule] = LIVE

    grade_answers: float = Field(
        0.5, ge=0, le=1, description="Evidence as likely to answer as this answers (grade 3)."
    )
    grade_partly: float = Field(
        0.2, ge=0, le=1, description="Evidence as likely as this partly answers (grade 2)."
    )
    grade_partly_hop: float = Field(
        0.05,
        ge=0,
        le=1,
        description="The same for a question of a chain, where the value must lead to an answer.",
    )
    grade_related: float = Field(
        0.1, ge=0, le=1, description="Evidence as likely as this is related (grade 1)."
    )
    reader: bool = Field(
        True,
        description="Let the reader that comes with `embedder=embedded` look at the likeliest"
        " sentences; off: words and vectors alone, faster.",
    )
    max_rewrites: int = Field(1, ge=0, le=1, description="Rewrites of one sub-question at most.")
    drift_similarity: float = Field(
        0.6, ge=0, le=1, description="A rewrite less similar to its question is thrown away."
    )
    max_sub_questions: int = Field(5, ge=1, le=10, description="Sub-questions of one question.")
    claims_per_question: int = Field(2, ge=1, le=10, description="Sentences per sub-answer.")
    list_items: int = Field(5, ge=1, le=20, description="Items of a recommended list.")
    max_question_chars: int = Field(4000, ge=10, description="Longest question accepted.")
    history_turns: int = Field(6, ge=0, le=50, description="Earlier turns a question may use.")
    max_clarifications: Annotated[int, AT_START] = Field(
        1, ge=0, le=5, description="Times that one question may be asked back; 0: never."
    )

    @model_validator(mode="after")
    def _grades_rise(self) -> Self:
        if not self.grade_related <= self.grade_partly <= self.grade_answers:
            raise ValueError("answering.grade_related <= grade_partly <= grade_answers must hold")
        return self
