"""What the page of all routes says of answers that FastAPI does not see as models."""

from __future__ import annotations

from typing import Any

from core.types import FrozenModel
from serve.protocols.langserve_schemas import AgentOutput

Response = dict[str, Any]


class Passage(FrozenModel):
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
    collection: str


class Passages(FrozenModel):
    """Hold passages, best first."""

    results: list[Passage]
    warnings: list[str]


class Timed(FrozenModel):
    """Count something and hold the milliseconds of the latest, None when there were none."""

    count: int
    p50_ms: float | None
    p95_ms: float | None


class TimedRoute(Timed):
    """Hold a route's requests; `errors` had a status of 500 or more."""

    errors: int


class CacheRates(FrozenModel):
    """Hold what a cache was asked for; `rate` is the share of hits, None before the first."""

    hits: int
    misses: int
    rate: float | None
    entries: int


class Figures(FrozenModel):
    """Hold the figures of a server.

    `answers` counts runs by stop reason, `distances` by that of their nearest evidence.
    """

    uptime_seconds: float
    requests: dict[str, TimedRoute]
    pools: dict[str, dict[str, int]]
    loop_lag_ms: dict[str, float | None]
    caches: dict[str, CacheRates]
    nodes: dict[str, Timed]
    tools: dict[str, Timed]
    answers: dict[str, int]
    distances: dict[str, int]
    rss_bytes: int | None


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
