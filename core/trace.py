"""One step of a run, as it is stored, printed, exported and drawn."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from core.types import Value


class StageStep(Value):
    """Say what one stage of a search did: evidence before and after, milliseconds, a note."""

    name: str
    before: int
    after: int
    ms: float
    note: str = ""


class Step(Value):
    """Record one decision or tool call.

    `evidence` lists (evidence id, score) pairs, best first; `auth_filter` is what the tool
    enforced; `usage` is what the step itself spent; `ms` is the time the step took; `stages`
    are those of a search, in order.
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


class RunRecord(Value):
    """Hold a finished run as the catalogue keeps it."""

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
