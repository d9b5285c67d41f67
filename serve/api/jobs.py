"""/api/v1/jobs: uploads and deletions, how far they are and how they ended."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response

from serve.depends import Caller, Parts, with_role

router = APIRouter(prefix="/api/v1", tags=["jobs"])

JobId = Annotated[str, Path(max_length=64, description="Id of a job of the caller.")]


@router.get("/jobs")
async def jobs(
    auth: Caller,
    parts: Parts,
    everyone: Annotated[
        Literal["true", "false"],
        Query(alias="all", description="Those of the whole tenant, for its admins."),
    ] = "false",
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> dict[str, Any]:
    """List the newest jobs of the caller, the newest first."""
    if whole := everyone == "true":
        with_role(auth, {parts.settings.serve.admin_role})
    found = await parts.runner.do(auth, lambda: parts.jobs.newest(auth, limit, everyone=whole))
    return {"jobs": [one.describe() for one in found]}


@router.get("/jobs/{job_id}")
async def job(job_id: JobId, auth: Caller, parts: Parts) -> dict[str, Any]:
    """Return how far a job of the caller is."""
    found = await asyncio.to_thread(parts.jobs.find, auth, job_id)
    return found.describe()


@router.delete("/jobs/{job_id}", status_code=204, response_class=Response)
async def cancel(job_id: JobId, auth: Caller, parts: Parts) -> None:
    """Cancel an upload of the caller; what of it was ingested already stays."""
    await asyncio.to_thread(parts.jobs.cancel, auth, job_id)
