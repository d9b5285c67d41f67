"""POST /api/v1/settings/reload: read the settings again, for the operator's own tenant."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter

from core.errors import PolicyError
from serve.depends import Admin, Parts

router = APIRouter(prefix="/api/v1", tags=["settings"])


@router.post("/settings/reload")
async def reload(auth: Admin, parts: Parts) -> dict[str, Any]:
    """Read the settings again and take over those that can change while the server runs."""
    if auth.tenant != parts.settings.serve.operator_tenant:
        raise PolicyError(
            "the settings are the operator's",
            hint="an admin of the tenant serve.operator_tenant may, or send the process SIGHUP",
        )
    done = await asyncio.to_thread(parts.reload.now, parts, auth)
    return done.describe()
