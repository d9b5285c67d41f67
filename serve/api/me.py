"""GET /api/v1/me: who the server takes a caller for."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from core.distribution import program_version
from serve.depends import Caller, Parts

router = APIRouter(prefix="/api/v1", tags=["me"])


@router.get("/me")
async def me(request: Request, auth: Caller, parts: Parts) -> dict[str, Any]:
    """Say who the caller is, what they may do, and what one of their runs may spend."""
    settings = parts.settings
    return {
        "tenant": auth.tenant,
        "user": auth.user,
        "roles": sorted(auth.roles),
        "anonymous": "authorization" not in request.headers,
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
