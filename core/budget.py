"""What one run may spend, what it has spent, and which limit it has met."""

from __future__ import annotations

from pydantic import Field

from core.types import FrozenModel, StopReason


class Usage(FrozenModel):
    """Count what a run has used so far; `ms` is wall-clock time since it began.

    `tokens` are those of the evidence that tools returned and those that a chat model read and
    wrote, which `model_tokens` counts apart; `model_calls` were sent; `degraded` counts decisions
    that the rules made in the model's place.
    """

    steps: int = 0
    tool_calls: int = 0
    tokens: int = 0
    model_calls: int = 0
    model_tokens: int = 0
    degraded: int = 0
    cost: float = 0.0
    ms: float = 0.0

    def plus(self, other: Usage) -> Usage:
        """Add counts; time is not additive, so the later clock wins."""
        return Usage(
            steps=self.steps + other.steps,
            tool_calls=self.tool_calls + other.tool_calls,
            tokens=self.tokens + other.tokens,
            model_calls=self.model_calls + other.model_calls,
            model_tokens=self.model_tokens + other.model_tokens,
            degraded=self.degraded + other.degraded,
            cost=self.cost + other.cost,
            ms=max(self.ms, other.ms),
        )


class Budget(FrozenModel):
    """Limit one run; the last `answer_share` of steps, tokens and time is kept for answering."""

    steps: int = Field(ge=1)
    tool_calls: int = Field(ge=0)
    tokens: int = Field(ge=0)
    seconds: float = Field(gt=0)
    cost: float = Field(ge=0)
    answer_share: float = Field(ge=0, lt=1)

    def exceeded(self, usage: Usage, *, answering: bool = False) -> StopReason | None:
        """Return the limit that is used up, or None.

        While searching (`answering` False) the reserved share counts as used, so that a run which
        runs out can still write its answer or its refusal.
        """
        share = 1.0 if answering else 1.0 - self.answer_share
        if usage.ms >= self.seconds * 1000 * share:
            return StopReason.timeout
        if usage.steps >= max(1, int(self.steps * share)):
            return StopReason.max_steps
        if usage.tool_calls >= self.tool_calls and not answering:
            return StopReason.max_tool_calls
        if usage.tokens > self.tokens * share or usage.cost > self.cost:
            return StopReason.max_tokens
        return None

    def seconds_for(self, *, answering: bool) -> float:
        """Return after how many seconds a model call must have ended."""
        return self.seconds * (1.0 if answering else 1.0 - self.answer_share)

    def tokens_for(self, usage: Usage, *, answering: bool) -> int:
        """Return how many tokens a node may still spend on the chat model."""
        share = 1.0 if answering else 1.0 - self.answer_share
        return max(0, int(self.tokens * share) - usage.tokens)

    def steps_left(self, usage: Usage) -> int:
        """Return how many steps of searching may still be made."""
        return max(0, int(self.steps * (1.0 - self.answer_share)) - usage.steps)

    def calls_left(self, usage: Usage) -> int:
        """Return how many tool calls may still be made."""
        return max(0, self.tool_calls - usage.tool_calls)
