"""POST /api/v1/search: ranked passages, no answer."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from core.auth import AuthContext
from core.metadata import parse_filters
from serve.api.shapes import FOUND
from serve.app_state import AppState
from serve.depends import Caller, Parts
from serve.runs.disconnect import unless_gone
from serve.searching import TOOLS, Collections, Filters, SearchName, searched

router = APIRouter(prefix="/api/v1", tags=["search"])


class SearchRequest(BaseModel):
    """Look for passages; `k` of them at most, of documents that meet all filters of `where`."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(min_length=1)
    collection: Collections = "default"
    pipeline: SearchName = "hybrid"
    k: int = Field(10, ge=1, le=100)
    where: Filters = Field(default_factory=list)


@router.post("/search", response_model=None, responses={200: FOUND})
async def search(body: SearchRequest, request: Request, auth: Caller, parts: Parts) -> Response:
    """Return passages, best first, as `carrel search --json` does."""
    work = partial(_recorded, parts, auth, body)
    return JSONResponse(await unless_gone(request, parts.runner.do(auth, work)))


def _recorded(parts: AppState, auth: AuthContext, body: SearchRequest) -> dict[str, Any]:
    wanted = (body.query, body.collection, body.pipeline, body.k)
    found = searched(parts.session, auth, *wanted, where=body.where)
    parts.audit.record(
        "retrieval",
        auth,
        tool=TOOLS[body.pipeline],
        collection=body.collection,
        filter=auth.narrowed(parse_filters(body.where)).describe(),
        evidence=[one["chunk_id"] for one in found["results"]],
        **parts.audit.question(body.query),
    )
    return found
