"""POST /api/v1/search: ranked passages, no answer."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from serve.api.shapes import FOUND
from serve.depends import Caller, Parts
from serve.disconnect import unless_gone
from serve.searching import SearchName, searched

router = APIRouter(prefix="/api/v1", tags=["search"])


class SearchRequest(BaseModel):
    """Look for passages; `k` of them at most."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(min_length=1)
    collection: str = "default"
    pipeline: SearchName = "hybrid"
    k: int = Field(10, ge=1, le=100)


@router.post("/search", response_model=None, responses={200: FOUND})
async def search(body: SearchRequest, request: Request, auth: Caller, parts: Parts) -> Response:
    """Return passages, best first, as `carrel search --json` does."""
    wanted = (body.query, body.collection, body.pipeline, body.k)
    work = partial(searched, parts.session, auth, *wanted)
    return JSONResponse(await unless_gone(request, parts.runner.do(auth, work)))
