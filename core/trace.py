"""What a run shows: each step as it is stored and drawn, and its answer as it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from core.types import Answer, Evidence, FrozenModel


class StageStep(FrozenModel):
    """Say what one stage of a search did: evidence before and after, milliseconds, a note."""

    name: str
    before: int
    after: int
    ms: float
    note: str = ""


CallOutcome = Literal[
    "ok", "invalid", "length", "repeated", "overflow", "timeout", "unavailable", "cancelled"
]


class ModelCall(FrozenModel):
    """Record one call of the chat model.

    `verb` is the decision it served; `prompt_hash` identifies messages and schema; `cached_tokens`
    is the part of the prompt that the server had cached; `first_ms` is the time to the first
    token. `outcome`: a good reply, one that is no valid decision, cut at max_tokens, cut because
    it repeated itself, never sent since it would not fit, too slow, not reached, given up.
    """

    verb: str
    prompt_hash: str
    outcome: CallOutcome = "ok"
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    first_ms: float = 0.0
    ms: float = 0.0
    reply: str = ""
    error: str = ""

    @property
    def lost(self) -> bool:
        """Tell whether the model could not be reached or did not answer in time."""
        return self.outcome in ("timeout", "unavailable")


class Step(FrozenModel):
    """Record one decision or tool call.

    `evidence` lists (evidence id, score) pairs, best first; `auth_filter` is what the tool
    enforced; `usage` is what the step itself spent; `ms` is the time the step took; `stages`
    are those of a search, in order; `calls` are those of the chat model; `degraded` says why the
    rules decided in its place; `partial` that a model failed or time ran out during a search.
    """

    node: str
    decision: str = ""
    reason: str = ""
    question_id: str = ""
    tool: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict)
    auth_filter: dict[str, Any] = Field(default_factory=dict)
    evidence: list[tuple[str, float]] = Field(default_factory=list)
    usage: dict[str, float] = Field(default_factory=dict)
    ms: float = 0.0
    stages: list[StageStep] = Field(default_factory=list)
    calls: list[ModelCall] = Field(default_factory=list)
    degraded: str = ""
    partial: bool = False


def spent_of_limit(trail: Sequence[Step]) -> dict[str, str]:
    """Return what was used of the limit that ended a run, and the limit; "–" where unknown."""
    found = next((one.arguments for one in reversed(trail) if "limit" in one.arguments), {})
    return {name: str(found.get(name, "–")) for name in ("used", "limit")}


class RunRecord(FrozenModel):
    """Hold a finished run as the catalogue keeps it.

    `recording` is what a replay needs (`graph.recording`), {} for none; it is shown to nobody.
    """

    run_id: str
    tenant: str
    user: str
    collection: str
    question: str
    pipeline: str
    created_at: str
    index_version: int
    result: dict[str, Any]
    trail: list[Step]
    recording: dict[str, Any] = Field(default_factory=dict, exclude=True, repr=False)

    @property
    def answer(self) -> Answer:
        """Return the answer, or the refusal."""
        names = ("claims", "conflicts", "refused", "stop_reason", "missing", "warnings")
        known = {name: self.result[name] for name in names if name in self.result}
        return Answer.model_validate({"text": self.result.get("answer", ""), **known})

    @property
    def evidence(self) -> list[Evidence]:
        """Return what was found, best first; a record keeps no document keys."""
        kept: list[dict[str, Any]] = self.result.get("evidence") or []
        return [Evidence.model_validate({"document_key": "", **one}) for one in kept]


class StreamEvent(FrozenModel):
    """Hold one piece of text that a reader sees before the run has ended.

    A `sentence` has passed verification and goes on where the last sentence ended: joined, they
    are the beginning of the final answer. A `token` belongs to the model's draft, of which nothing
    has been checked. `rules` is the verified answer that the rules would give, while a model still
    reads: it stands if the model is not ready in time, and gives way to what follows.
    """

    kind: Literal["sentence", "token", "rules"]
    text: str
