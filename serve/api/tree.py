"""/api/v1/tree: the tree of a collection as the caller sees it, built by who may write."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from core.auth import AuthContext
from serve.api.documents import CollectionName
from serve.errors import NotFound
from serve.services import AppState, Caller, DocumentWriter, Services

router = APIRouter(prefix="/api/v1", tags=["documents"])
Depth = Annotated[int, Query(ge=0, le=100, description="Levels below the root.")]


@router.get("/tree")
async def tree(
    auth: Caller, services: Services, collection: CollectionName = "default", depth: Depth = 1
) -> dict[str, Any]:
    """Return the nodes that the caller sees, from the root down, with cited summaries."""
    return await services.runner.do(auth, lambda: _described(services, auth, collection, depth))


@router.post("/tree")
async def build_tree(
    auth: DocumentWriter, services: Services, collection: CollectionName = "default"
) -> dict[str, Any]:
    """Build what the tree of a collection lacks, and return its size as the caller sees it."""

    def build() -> dict[str, Any]:
        target = services.session.catalogue.visible_collection(auth, collection)
        seconds = services.session.build_tree(target)["seconds"]
        return {**_described(services, auth, collection, 0), "seconds": seconds}

    return await services.runner.do(auth, build)


def _described(
    services: AppState, auth: AuthContext, collection: str, depth: int
) -> dict[str, Any]:
    target = services.session.catalogue.visible_collection(auth, collection)
    found = services.session.describe_tree(auth, target, depth)
    if found is None:
        raise NotFound("the caller sees no tree of this collection", value=collection)
    cited = [
        c for one in found["tree"] for sentence in one["summary"] for c in sentence["citations"]
    ]
    given = {"evidence": [one["chunk_id"] for one in cited], "filter": auth.describe()}
    services.audit.record("retrieval", auth, tool="tree", collection=collection, **given)
    return found
