"""/api/v1/health, /metrics and /me: is the server there, how is it, and whom does it see?"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from core.distribution import program_version
from serve.api.shapes import COUNTED, Figures
from serve.services import Admin, Caller, Services

router = APIRouter()

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/api/v1/health", tags=["health"])
async def health(services: Services) -> dict[str, Any]:
    """Say that the server answers, and whether its data is intact; needs no key.

    When it is not, `status` is "degraded" and `reasons` say in general what is damaged. `login` is
    where a browser signs in through the operator's provider, if there is one.
    """
    reasons = services.session.store.warnings()
    state = {"status": "degraded", "reasons": reasons} if reasons else {"status": "ok"}
    return {**state, "login": "/login"} if services.authenticator.sign_in else state


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
        "version": program_version(),
    }
