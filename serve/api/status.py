"""/api/v1/health, /metrics and /me: is the server there, how is it, and whom does it see?"""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response

from core.distribution import program_version
from core.errors import CarrelError, StorageError
from core.types import FrozenModel
from ingest.loaders.formats import known_formats
from serve.services import Admin, Caller, Services

router = APIRouter()

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


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


COUNTED: dict[str, Any] = {
    "description": "Counts and times for Prometheus.",
    "content": {"text/plain": {"schema": {"type": "string"}}},
}


@router.get("/api/v1/health", tags=["health"])
async def health(services: Services) -> dict[str, Any]:
    """Say that the server answers, and whether its data is intact; needs no key.

    When it is not, `status` is "degraded" and `reasons` say in general what is damaged. `login` is
    where a browser signs in through the operator's provider, if there is one.
    """
    reasons = services.session.store.warnings()
    state = {"status": "degraded", "reasons": reasons} if reasons else {"status": "ok"}
    return {**state, "login": "/login"} if services.authenticator.sign_in else state


@router.get("/api/v1/ready", tags=["health"], responses={503: {"description": "Not now."}})
async def ready(services: Services, response: Response) -> dict[str, str]:
    """Say whether the server can answer questions now; needs no key.

    A catalogue that does not answer makes it 503, where `/api/v1/health` goes on.
    """
    try:
        await asyncio.to_thread(services.catalogue.index_version)
    except (StorageError, CarrelError):
        response.status_code = 503
        return {"status": "not ready", "reason": "the catalogue does not answer"}
    return {"status": "ready"}


@router.get("/metrics", tags=["health"], response_model=None, responses={200: COUNTED})
async def metrics(auth: Admin, services: Services) -> Response:
    """Return counts and times for Prometheus; needs the admin's role."""
    return Response(services.metrics.text(), media_type=PROMETHEUS)


@router.get("/api/v1/metrics", tags=["health"], responses={200: {"model": Figures}})
async def figures(auth: Admin, services: Services) -> dict[str, Any]:
    """Return counts, times and hit rates of this server as JSON; needs the admin's role.

    Times are of the latest requests and runs, a thousand of each.
    """
    return services.metrics.figures()


@router.get("/api/v1/me", tags=["me"])
async def me(request: Request, auth: Caller, services: Services) -> dict[str, Any]:
    """Say who the caller is, what they may do, and what one of their runs may spend."""
    settings = services.settings
    return {
        "tenant": auth.tenant,
        "user": auth.user,
        "roles": sorted(auth.roles),
        "anonymous": request.scope["carrel.how"] == "anonymous",
        "signed_in": request.scope["carrel.how"] == "session",
        "may": {
            "write": bool(auth.roles & set(settings.serve.writer_roles)),
            "admin": settings.serve.admin_role in auth.roles,
        },
        "limits": {
            "steps": settings.budget.steps,
            "tool_calls": settings.budget.tool_calls,
            "tokens": settings.budget.tokens,
            "seconds": settings.budget.seconds,
            "cost": settings.budget.cost,
        },
        "upload_bytes": settings.serve.upload_bytes,
        "formats": known_formats(),
        "version": program_version(),
    }
