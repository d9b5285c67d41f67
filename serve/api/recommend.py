"""/api/v1/recommend: documents that meet a need, and what its callers like and dislike."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import ConfigDict, Field

from core.auth import AuthContext
from core.metadata import parse_filters
from display.relations import relations_drawing
from serve.api.documents import CollectionName
from serve.questions import Storable
from serve.recommending import MOST_ITEMS, recommended
from serve.runs.following import cancel_when_gone
from serve.searching import Collections, Filters
from serve.services import Admin, AppState, Caller, Services
from stores.runlog.runs import DocumentOpinion

router = APIRouter(prefix="/api/v1/recommend", tags=["search"])


class RecommendRequest(Storable):
    """Say what is needed; `k` documents at most, which meet all filters of `where`.

    With `draw`, the graph of their relations comes as SVG.
    """

    model_config = ConfigDict(extra="forbid")

    need: str = Field(min_length=1)
    collection: Collections = "default"
    k: int = Field(10, ge=1, le=MOST_ITEMS)
    where: Filters = Field(default_factory=list)
    draw: bool = False


class RatedDocument(Storable):
    """Like a document ("up"), dislike it, or tell that it was looked at or is in use."""

    model_config = ConfigDict(extra="forbid")

    document_id: Annotated[str, Field(max_length=1000)]
    collection: Annotated[str, Field(max_length=64)] = "default"
    rating: DocumentOpinion


@router.post("", response_model=None)
async def recommend(
    body: RecommendRequest, request: Request, auth: Caller, services: Services
) -> Response:
    """Return documents with their factors and reasons, as `carrel recommend --json` does."""
    work = partial(recommend_on_record, services, auth, body)
    return JSONResponse(await cancel_when_gone(request, services.runner.do(auth, work)))


def recommend_on_record(
    services: AppState, auth: AuthContext, body: RecommendRequest
) -> dict[str, Any]:
    """Recommend, and record the passages that were cited."""
    found = recommended(
        services.session, auth, body.need, body.collection, body.k, where=body.where
    )
    cited = [c for item in found["items"] for why in item["reasons"] for c in why["citations"]]
    services.audit.record(
        "retrieval",
        auth,
        tool="recommend",
        collection=body.collection,
        filter=auth.narrowed(parse_filters(body.where)).describe(),
        evidence=list(dict.fromkeys(one["chunk_id"] for one in cited)),
        **services.audit.question(body.need),
    )
    if body.draw:
        found["drawing"] = relations_drawing(found["relations"])
    return found


@router.get("/ratings")
async def ratings(
    auth: Caller, services: Services, collection: CollectionName = "default"
) -> dict[str, Any]:
    """List what the caller likes and dislikes of what they may see in a collection."""

    def listed() -> dict[str, Any]:
        found = services.session.catalogue.visible_collection(auth, collection)
        return {"ratings": [one.describe() for one in services.runs.list_ratings(auth, found.id)]}

    return await services.runner.do(auth, listed)


@router.put("/ratings", status_code=204, response_class=Response)
async def rate(body: RatedDocument, auth: Caller, services: Services) -> None:
    """Say what the caller thinks of a document or does with it; a later opinion replaces it."""

    def save() -> None:
        found = services.session.catalogue.visible_collection(auth, body.collection)
        services.runs.rate_document(auth, found.id, body.document_id, body.rating)

    await services.runner.do(auth, save)


@router.delete("/ratings", status_code=204, response_class=Response)
async def reset(auth: Caller, services: Services) -> None:
    """Forget all that the caller likes and dislikes."""
    await services.runner.do(auth, lambda: services.runs.delete_ratings(auth))


@router.get("/figures")
async def figures(auth: Admin, services: Services) -> dict[str, Any]:
    """Tell how much of what was recommended is looked at and used; needs the admin's role.

    Each pair of a user and a document counts once. `evaluation` is of the last night.
    """
    counts = await services.runner.do(auth, lambda: services.runs.adoption(auth.tenant))
    shares = {
        name: round(counts[of] / counts["listed"], 4) if counts["listed"] else None
        for name, of in (("click_through", "viewed"), ("adoption", "adopted"))
    }
    return {**counts, **shares, "evaluation": services.checks.opinions.get(auth.tenant)}
