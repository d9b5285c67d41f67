"""What a run may spend, and what its calls of the chat model may spend within one node of it.

A node opens a ledger; every call made below it, however deep, finds it here and is charged to it.
So it is with the time limit of the run, search or request that a read belongs to. Work without a
waiting caller (ingest, doctor, backup) has none and is not cut.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from pydantic import Field

from core.errors import CallerError
from core.language.scan import estimate_tokens
from core.trace import CallOutcome, ModelCall
from core.types import Claim, Draft, Evidence, FrozenModel, StopReason


class Usage(FrozenModel):
    """Count what a run has used so far; `ms` is wall-clock time since it began.

    `tokens` are those of the evidence that tools returned and those that a chat model read and
    wrote, which `model_tokens` counts apart; `model_calls` were sent; `degraded` counts decisions
    that the rules made in the model's place, `dropped` passages that found no room in the tokens.
    """

    steps: int = 0
    tool_calls: int = 0
    tokens: int = 0
    model_calls: int = 0
    model_tokens: int = 0
    degraded: int = 0
    dropped: int = 0
    cost: float = 0.0
    ms: float = 0.0

    def plus(self, other: Usage) -> Usage:
        """Add counts; time is not additive, so the later clock wins."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in Usage.model_fields}
        return Usage(**(sums | {"ms": max(self.ms, other.ms)}))


# To search once more: propose, retrieve, grade, decide. To answer: write, verify.
SEARCH_STEPS, ANSWER_STEPS = 4, 2


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
        if usage.steps >= (self.steps if answering else max(1, self._search_steps)):
            return StopReason.max_steps
        if usage.tool_calls >= self.tool_calls and not answering:
            return StopReason.max_tool_calls
        if usage.tokens > self.tokens * share or usage.dropped:
            return StopReason.max_tokens
        return StopReason.max_cost if usage.cost > self.cost else None

    def spent(self, limit: StopReason | None, usage: Usage) -> dict[str, float]:
        """Return what was used of a limit that was reached, and the limit; {} for no limit."""
        name = "seconds" if limit == StopReason.timeout else (limit or "").removeprefix("max_")
        if name not in Budget.model_fields:
            return {}
        used = usage.ms / 1000 if name == "seconds" else getattr(usage, name)
        return {"used": round(used, 3), "limit": round(getattr(self, name), 3)}

    def seconds_for(self, *, answering: bool) -> float:
        """Return after how many seconds a model call must have ended."""
        return self.seconds * (1.0 if answering else 1.0 - self.answer_share)

    def tokens_for(self, usage: Usage, *, answering: bool) -> int:
        """Return how many tokens a node may still spend."""
        share = 1.0 if answering else 1.0 - self.answer_share
        return max(0, int(self.tokens * share) - usage.tokens)

    def cost_for(self, usage: Usage, *, answering: bool) -> float:
        """Return what a node may still spend on the chat model."""
        return max(0.0, self.cost * (1.0 if answering else 1.0 - self.answer_share) - usage.cost)

    def steps_left(self, usage: Usage) -> int:
        """Return how many steps of searching may still be made, so that an answer can follow."""
        return max(0, self._search_steps - usage.steps)

    @property
    def _search_steps(self) -> int:
        return min(int(self.steps * (1.0 - self.answer_share)), self.steps - ANSWER_STEPS)

    def calls_left(self, usage: Usage) -> int:
        """Return how many tool calls may still be made."""
        return max(0, self.tool_calls - usage.tool_calls)


DEFAULT_SECONDS = 120.0  # as budget.seconds is by default
DEFAULT_TOKENS = 1_000_000  # chosen to be no limit in practice


@dataclass(frozen=True)
class Room:
    """Hold how many tokens of passages a run still takes in, but for those that it knows."""

    tokens: int
    known: Collection[str] = ()

    def fitting(self, found: Sequence[Evidence]) -> list[Evidence]:
        """Return the passages that fit, the best first."""
        kept: list[Evidence] = []
        left = max(0, self.tokens)
        for item in found:
            cost = 0 if item.chunk_id in self.known else estimate_tokens(item.text)
            if cost <= left:
                kept.append(item)
                left -= cost
        return kept


PRICED_TOKENS = 1_000_000


def price_of(read: int, written: int, prices: tuple[float, float]) -> float:
    """Return what tokens cost that were read and written."""
    return (read * prices[0] + written * prices[1]) / PRICED_TOKENS


@dataclass
class Ledger:
    """Limit and record the model calls of one node.

    `deadline` is in `time.monotonic()` seconds; `tokens` may still be read and written, for `cost`
    at `prices` (of PRICED_TOKENS read, and of as many written); `owner` names the caller, so that a
    server's slot is never shared between two; `lost` says that the model failed to answer earlier
    in this run; `room` is that for passages. `on_text` hears draft text as it is written,
    `on_claim` each claim as soon as it is complete, `on_draft` what the rules would answer while a
    model still writes. None of it is verified yet.
    """

    deadline: float
    tokens: int
    owner: str = ""
    lost: bool = False
    cost: float = math.inf
    prices: tuple[float, float] = (0.0, 0.0)
    room: Room | None = None
    cancelled: Callable[[], bool] = lambda: False
    on_text: Callable[[str], None] | None = None
    on_claim: Callable[[Claim], None] | None = None
    on_draft: Callable[[Draft], None] | None = None
    calls: list[ModelCall] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def seconds_left(self) -> float:
        """Return the seconds that calls still have; negative when late."""
        return self.deadline - time.monotonic()

    def tokens_left(self) -> int:
        """Return how many tokens may still be read and written."""
        return self.tokens - self.spent

    def affordable(self, prompt: int) -> int:
        """Return how many tokens may be written after a prompt; negative: it cannot be read."""
        money = self.cost - sum(
            price_of(call.prompt_tokens, call.completion_tokens, self.prices) for call in self.calls
        )
        money -= price_of(prompt, 0, self.prices)
        left = self.tokens_left() - prompt
        if money < 0:
            return -1
        if not self.prices[1] or math.isinf(money):
            return left
        return min(left, int(money * PRICED_TOKENS / self.prices[1]))

    @property
    def spent(self) -> int:
        """Return the tokens that were read and written."""
        return sum(call.prompt_tokens + call.completion_tokens for call in self.calls)

    def record(self, call: ModelCall) -> None:
        """Charge one call; a model that does not answer is lost for the rest of the run."""
        self.calls.append(call)
        self.lost = self.lost or call.lost

    def judge(self, outcome: CallOutcome, error: str) -> None:
        """Say of the last call, if any, that its reply was no valid decision, and why."""
        if not self.calls:
            return
        last = self.calls.pop()
        self.calls.append(last.model_copy(update={"outcome": outcome, "error": error}))

    @property
    def warnings(self) -> list[str]:
        """Return what a reader of the answer should know."""
        decided = [f"the rules decided in the model's place: {reason}" for reason in self.degraded]
        return decided + self.notes

    def note(self, text: str) -> None:
        """Let a reader of the answer know something, once."""
        if text not in self.notes:
            self.notes.append(text)

    def degrade(self, reason: str) -> None:
        """Note that the rules decided in the model's place, and why."""
        if reason not in self.degraded:
            self.degraded.append(reason)


_current: ContextVar[Ledger | None] = ContextVar("ledger", default=None)


def current_ledger() -> Ledger:
    """Return the ledger of the running node; outside of a run, a fresh one with wide limits."""
    ledger = _current.get()
    return ledger or Ledger(time.monotonic() + DEFAULT_SECONDS, DEFAULT_TOKENS)


@contextmanager
def opened_ledger(ledger: Ledger) -> Iterator[Ledger]:
    """Make this the ledger of everything called inside."""
    token = _current.set(ledger)
    try:
        yield ledger
    finally:
        _current.reset(token)


class TimeUpError(CallerError):
    """Say that the caller's time was used up before a read had ended."""

    retryable = True


@dataclass(frozen=True)
class TimeLimit:
    """Hold when the time is up, by `time.monotonic()`, and what to say then."""

    until: float = math.inf
    rule: str = "the time of this request is used up (budget.seconds)"
    hint: str = "ask for less, or raise the setting"

    def is_up(self) -> bool:
        """Tell whether the time is used up."""
        return time.monotonic() > self.until

    def error(self) -> TimeUpError:
        """Return what to raise when it is."""
        return TimeUpError(self.rule, hint=self.hint)


_ENDLESS = TimeLimit()
_limit_now: ContextVar[TimeLimit] = ContextVar("time_limit", default=_ENDLESS)


def current_limit() -> TimeLimit:
    """Return the limit of what runs now, an endless one where there is none."""
    return _limit_now.get()


@contextmanager
def limited_time(limit: TimeLimit) -> Iterator[TimeLimit]:
    """Limit the time of reads inside the block; of two limits the sooner one counts."""
    sooner = min(limit, _limit_now.get(), key=lambda one: one.until)
    token = _limit_now.set(sooner)
    try:
        yield sooner
    finally:
        _limit_now.reset(token)
