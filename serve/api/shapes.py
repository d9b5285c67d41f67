"""What the page of all routes says of answers that FastAPI does not see as models."""

from __future__ import annotations

from typing import Any

from core.types import Value
from serve.langserve_schemas import AgentOutput

Response = dict[str, Any]


class Passage(Value):
    """Hold one passage found; `score` is comparable within one search only."""

    document_id: str
    source: str
    chunk_id: str
    score: float
    text: str
    title: str
    section: str
    page: int | None
    language: str
    version: str
    updated_at: str
    scores: dict[str, float]
    metadata: dict[str, Any]


class Passages(Value):
    """Hold passages, best first."""

    results: list[Passage]
    warnings: list[str]


ANSWERED: Response = {
    "model": AgentOutput,
    "description": "The answer or the refusal; with `stream` events that end with it.",
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
}
FOUND: Response = {"model": Passages, "description": "Passages, best first."}
EXPORTED: Response = {
    "description": "Opinions with their questions and answers.",
    "content": {
        "application/json": {"schema": {"type": "object", "required": ["feedback"]}},
        "application/x-ndjson": {"schema": {"type": "string"}},
    },
}
COUNTED: Response = {
    "description": "Counts and times for Prometheus.",
    "content": {"text/plain": {"schema": {"type": "string"}}},
}
