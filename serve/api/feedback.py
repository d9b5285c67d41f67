"""/api/v1/feedback: what readers thought of their runs, and its export."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from serve.api.runs import own_run
from serve.api.shapes import EXPORTED
from serve.depends import Caller, Parts
from stores.runlog.runs import Rating

router = APIRouter(prefix="/api/v1", tags=["feedback"])


class FeedbackRequest(BaseModel):
    """Say whether the answer of a run was good."""

    model_config = ConfigDict(extra="forbid")

    run_id: str = Field(max_length=64)
    rating: Rating
    comment: str = Field("", max_length=4000)


@router.post("/feedback", status_code=201)
async def give(body: FeedbackRequest, auth: Caller, parts: Parts) -> dict[str, Any]:
    """Keep the caller's opinion of one of their runs; a later one replaces it."""
    comment = body.comment.encode("utf-8", "replace").decode("utf-8").replace("\x00", "")

    def save() -> None:
        run = own_run(parts.session.runs, auth, body.run_id)
        parts.runs.save_feedback(auth.tenant, auth.user, run.run_id, body.rating, comment)

    await parts.runner.do(auth, save)
    return {"run_id": body.run_id, "rating": body.rating, "comment": comment}


@router.get("/feedback", response_model=None, responses={200: EXPORTED})
async def export(
    auth: Caller,
    parts: Parts,
    form: Annotated[Literal["json", "jsonl"], Query(alias="format")] = "json",
) -> Response:
    """Export the caller's opinions; for an admin, those of the whole tenant."""
    everyone = parts.settings.serve.admin_role in auth.roles
    found = await parts.runner.do(
        auth, lambda: list(parts.runs.export_feedback(auth, everyone=everyone))
    )
    if form == "json":
        return Response(_text({"feedback": found}), media_type="application/json")
    lines = "".join(_text(one) + "\n" for one in found)
    return Response(lines, media_type="application/x-ndjson")


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
