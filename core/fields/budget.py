"""Settings: limit one run."""

from __future__ import annotations

from pydantic import BaseModel, Field


class BudgetFields(BaseModel):
    """Limit one run."""

    budget_steps: int = Field(128, ge=1, description="Graph steps of one run.")
    budget_tool_calls: int = Field(24, ge=0, description="Tool calls of one run.")
    budget_tokens: int = Field(60_000, ge=0, description="Tokens read and written in one run.")
    budget_seconds: float = Field(120, gt=0, description="Wall-clock time of one run.")
    budget_cost: float = Field(1.0, ge=0, description="Cost of one run, in the provider's unit.")
    budget_answer_share: float = Field(
        0.15, ge=0, lt=1, description="Share of the budget kept for the answer."
    )
