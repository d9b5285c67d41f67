"""Settings: limit one run."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from core.fields.group import LIVE, ChangeRule, Group


class BudgetSettings(Group):
    """Limit one run."""

    CHANGES: ClassVar[ChangeRule] = LIVE

    steps: int = Field(128, ge=1, description="Graph steps of one run.")
    tool_calls: int = Field(24, ge=0, description="Tool calls of one run.")
    tokens: int = Field(60_000, ge=0, description="Tokens read and written in one run.")
    seconds: float = Field(120, gt=0, description="Wall-clock time of one run.")
    cost: float = Field(1.0, ge=0, description="Cost of one run, in the provider's unit.")
