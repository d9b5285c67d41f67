"""Settings of answering, planning, what a run may spend, and how answers are measured."""

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


class PlanSettings(Group):
    """Bound plans of several questions and their operations."""

    CHANGES: ClassVar[ChangeRule] = LIVE

    in_degree: int = Field(
        3, ge=1, le=9, description="Questions that one question of a plan may depend on."
    )
    operations: int = Field(40, ge=3, le=200, description="Operations of one plan.")
    top_k: int = Field(
        50, ge=1, le=100, description="Hits that one operation of a plan may ask for."
    )
    fan_out: int = Field(
        3, ge=1, le=10, description="Values or entities that one step of a plan may follow."
    )
    max_entities: int = Field(
        5, ge=1, le=50, description="Entities that one step of a plan may take from its evidence."
    )
    max_evidence: int = Field(
        20, ge=1, le=200, description="Pieces of evidence that a plan may give to its answer."
    )
    slot_chars: int = Field(
        200, ge=10, le=1000, description="Longest value that a slot of a plan may hold."
    )
    max_backtracks: int = Field(
        1, ge=0, le=5, description="Times that a run may undo the values of a slot and try others."
    )
    max_replans: int = Field(
        1, ge=0, le=5, description="Times that a plan of several questions may be extended."
    )
    max_hops: int = Field(
        2, ge=0, le=5, description="Searches for what a plain question's evidence leaves open."
    )
    plain_confidence: float = Field(
        0.6,
        ge=0,
        le=1,
        description="A plain question this sure is not planned with --pipeline auto.",
    )


class BudgetSettings(Group):
    """Limit one run."""

    CHANGES: ClassVar[ChangeRule] = LIVE

    steps: int = Field(128, ge=1, description="Graph steps of one run.")
    tool_calls: int = Field(24, ge=0, description="Tool calls of one run.")
    tokens: int = Field(60_000, ge=0, description="Tokens read and written in one run.")
    seconds: float = Field(120, gt=0, description="Wall-clock time of one run.")
    cost: float = Field(1.0, ge=0, description="Cost of one run, in the provider's unit.")


class EvaluationSettings(Group):
    """Say how the retrieval of a collection is measured."""

    depth: int = Field(300, ge=100, le=10_000, description="Chunks that `eval` ranks documents by.")
    resamples: int = Field(
        10_000, ge=100, le=1_000_000, description="Resamples of an interval or a paired test."
    )
    seed: int = Field(0, ge=0, description="Seed of the resamples and of shuffled sheets.")
