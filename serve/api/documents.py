"""/api/v1/collections and /api/v1/documents: what a caller may see, and uploads."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.requests import ClientDisconnect

from serve.depends import Caller, DocumentWriter, Parts
from serve.errors import Refused

router = APIRouter(prefix="/api/v1", tags=["documents"])

CollectionName = Annotated[str, Query(max_length=64)]


@router.get("/collections")
async def collections(auth: Caller, parts: Parts) -> dict[str, Any]:
    """List the collections in which the caller may see a document, with the number of those."""

    def listed() -> list[dict[str, Any]]:
        found = parts.session.store.catalogue.collections(auth.tenant)
        counts = {one.name: parts.listing.count(auth, one) for one in found}
        return [
            {"name": one.name, "profile": one.profile.name, "documents": counts[one.name]}
            for one in found
            if counts[one.name]
        ]

    return {"collections": await parts.runner.do(auth, listed)}


@router.get("/documents")
async def documents(
    auth: Caller,
    parts: Parts,
    collection: CollectionName = "default",
    after: Annotated[str, Query(max_length=1000, description="The last id already seen.")] = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> dict[str, Any]:
    """List documents that the caller may see, ordered by id."""

    def listed() -> list[dict[str, Any]]:
        found = parts.session.store.catalogue.collection(auth.tenant, collection)
        return parts.listing.documents(auth, found, after=after, limit=limit)

    return {"documents": await parts.runner.do(auth, listed)}


@router.post(
    "/documents",
    status_code=202,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string"}}},
        }
    },
)
async def upload(
    request: Request,
    auth: DocumentWriter,
    parts: Parts,
    name: Annotated[str, Query(max_length=200, description="File name, which says its format.")],
    collection: CollectionName = "default",
    role: Annotated[list[str] | None, Query(max_length=50, description="Who may read it.")] = None,
) -> dict[str, Any]:
    """Take a document, the body as it is, and ingest it in the background; returns the job."""
    job, path = parts.jobs.prepare(auth, collection, name, role or [])
    try:
        if not await _written(request, path):
            raise Refused(400, "empty", "an upload has at least one byte", value=name)
        facts = {"job": job.id, "collection": collection, "name": job.name, "readers": role or []}
        await parts.runner.do(auth, lambda: parts.audit.record("upload", auth, **facts))
    except BaseException:
        parts.jobs.discard(job)
        raise
    parts.jobs.start(job)
    return job.describe()


@router.get("/jobs/{job_id}")
async def job(job_id: str, auth: Caller, parts: Parts) -> dict[str, Any]:
    """Return how far an upload of the caller is."""
    return parts.jobs.find(auth, job_id).describe()


async def _written(request: Request, path: Path) -> int:
    written = 0
    with path.open("xb") as file:
        try:
            async for piece in request.stream():
                written += len(piece)
                await asyncio.to_thread(file.write, piece)
        except ClientDisconnect:
            raise Refused(499, "client_gone", "the client has left") from None
    return written
