"""/api/v1/health, /metrics and /api/v1/metrics: is the server there, and how is it?"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from serve.api.shapes import COUNTED, Figures
from serve.depends import Admin, Parts

router = APIRouter(tags=["health"])

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/api/v1/health")
async def health(parts: Parts) -> dict[str, Any]:
    """Say that the server answers, and whether its data is intact; needs no key.

    When it is not, `status` is "degraded" and `reasons` say in general what is damaged.
    """
    reasons = parts.session.store.warnings()
    return {"status": "degraded", "reasons": reasons} if reasons else {"status": "ok"}


@router.get("/metrics", response_model=None, responses={200: COUNTED})
async def metrics(auth: Admin, parts: Parts) -> Response:
    """Return counts and times for Prometheus; needs the admin's role."""
    return Response(parts.metrics.text(), media_type=PROMETHEUS)


@router.get("/api/v1/metrics", responses={200: {"model": Figures}})
async def figures(auth: Admin, parts: Parts) -> dict[str, Any]:
    """Return counts, times and hit rates of this server as JSON; needs the admin's role.

    Times are of the latest requests and runs, a thousand of each.
    """
    return parts.metrics.figures()
