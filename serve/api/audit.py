"""GET /api/v1/audit: what was done in an admin's tenant."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query

from serve.depends import Admin, Parts

router = APIRouter(prefix="/api/v1", tags=["audit"])


@router.get("/audit")
async def audit(
    auth: Admin,
    parts: Parts,
    before: Annotated[int | None, Query(ge=1, le=2**62, description="The last `seq` seen.")] = None,
    kind: Annotated[str | None, Query(max_length=32)] = None,
    document: Annotated[
        str | None, Query(max_length=1000, description="Id of a document, or name of an upload.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> dict[str, Any]:
    """List what was recorded of the admin's own tenant, the newest first."""

    def listed() -> list[dict[str, Any]]:
        wanted = partial(parts.audit.log.newest, before=before, kind=kind, document=document)
        return wanted(auth.tenant, limit=limit)

    found = await parts.runner.do(auth, listed)
    more = found[-1]["seq"] if len(found) == limit else None
    return {"events": found, "next": more}
