"""/api/v1/runs and /feedback: what a caller has asked, drawn as well, and their opinion of it."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from core.auth import AuthContext
from core.errors import CallerError
from core.language.detect import detect_language
from core.trace import RunRecord
from display.html import Markup
from display.plan_drawing import outcome_of, plan_drawing, plan_of
from display.runs import graph_drawing, path_drawing
from display.steps import shown_step
from serve.errors import NotFound
from serve.services import Caller, Services
from stores.ports import RunLog
from stores.runlog.runs import Rating

router = APIRouter(prefix="/api/v1")

EXPORTED: dict[str, Any] = {
    "description": "Opinions with their questions and answers.",
    "content": {
        "application/json": {"schema": {"type": "object", "required": ["feedback"]}},
        "application/x-ndjson": {"schema": {"type": "string"}},
    },
}

RunId = Annotated[str, Path(max_length=64, description="Id of a run of the caller.")]


@router.get("/runs", tags=["runs"])
async def runs(
    auth: Caller, services: Services, limit: Annotated[int, Query(ge=1, le=200)] = 20
) -> dict[str, Any]:
    """List the caller's newest runs."""
    store = services.session.runs
    found = await services.runner.do(auth, lambda: store.newest(auth, limit))
    return {
        "runs": [
            run.model_dump(include={"run_id", "collection", "question", "pipeline", "created_at"})
            | {"refused": run.result.get("refused"), "stop_reason": run.result.get("stop_reason")}
            for run in found
        ]
    }


@router.get("/runs/{run_id}", tags=["runs"])
async def run(run_id: RunId, auth: Caller, services: Services) -> dict[str, Any]:
    """Return one run of the caller with its result and its trail, as far as they may see it now."""
    store = services.session.runs
    found = await services.runner.do(auth, lambda: find_own_run(store, auth, run_id))
    language = detect_language(found.question)
    trail = [shown_step(step, language) for step in found.trail]
    return found.model_dump(mode="json", exclude={"tenant", "user", "trail"}) | {"trail": trail}


def find_own_run(store: RunLog, auth: AuthContext, run_id: str) -> RunRecord:
    """Return a run of this caller by its whole id, or raise NotFound."""
    missing = NotFound("there is no such run of yours", value=run_id)
    try:
        found = store.load(auth, run_id)
    except CallerError:
        raise missing from None
    if found.run_id != run_id:
        raise missing  # "last", or the beginning of an id
    return found


SVG = "image/svg+xml"
DRAWN: dict[int | str, dict[str, Any]] = {
    200: {"content": {SVG: {"schema": {"type": "string"}}}, "description": "A drawing."}
}


@router.get("/graph.svg", tags=["drawings"], response_class=Response, responses=DRAWN)
async def graph(auth: Caller, services: Services) -> Response:
    """Draw the graph: every node of a run and every way between them."""
    return _svg_response(await services.runner.do(auth, graph_drawing))


@router.get("/runs/{run_id}/graph.svg", tags=["drawings"], response_class=Response, responses=DRAWN)
async def run_graph(run_id: RunId, auth: Caller, services: Services) -> Response:
    """Draw the path of one run of the caller over the graph, with how often it went each way."""
    store = services.session.runs

    def make() -> Markup:
        return path_drawing(find_own_run(store, auth, run_id))

    return _svg_response(await services.runner.do(auth, make))


@router.get("/runs/{run_id}/plan.svg", tags=["drawings"], response_class=Response, responses=DRAWN)
async def run_plan(run_id: RunId, auth: Caller, services: Services) -> Response:
    """Draw the plan of one run of the caller: questions, values found, what was not answered."""
    store = services.session.runs

    def make() -> Markup:
        run = find_own_run(store, auth, run_id)
        plan = plan_of(run)
        if not plan.questions:
            raise NotFound("this run ended before it had a plan", value=run_id)
        return plan_drawing(plan, outcome_of(run))

    return _svg_response(await services.runner.do(auth, make))


def _svg_response(markup: Markup) -> Response:
    return Response(markup, media_type=SVG)


class FeedbackRequest(BaseModel):
    """Say whether the answer of a run was good."""

    model_config = ConfigDict(extra="forbid")

    run_id: str = Field(max_length=64)
    rating: Rating
    comment: str = Field("", max_length=4000)


@router.post("/feedback", tags=["feedback"], status_code=201)
async def give(body: FeedbackRequest, auth: Caller, services: Services) -> dict[str, Any]:
    """Keep the caller's opinion of one of their runs; a later one replaces it."""
    comment = body.comment.encode("utf-8", "replace").decode("utf-8").replace("\x00", "")

    def save() -> None:
        run = find_own_run(services.session.runs, auth, body.run_id)
        services.runs.save_feedback(auth.tenant, auth.user, run.run_id, body.rating, comment)

    await services.runner.do(auth, save)
    return {"run_id": body.run_id, "rating": body.rating, "comment": comment}


@router.get("/feedback", tags=["feedback"], response_model=None, responses={200: EXPORTED})
async def export(
    auth: Caller,
    services: Services,
    form: Annotated[Literal["json", "jsonl"], Query(alias="format")] = "json",
) -> Response:
    """Export the caller's opinions; for an admin, those of the whole tenant."""
    everyone = services.settings.serve.admin_role in auth.roles
    found = await services.runner.do(
        auth, lambda: list(services.runs.export_feedback(auth, everyone=everyone))
    )
    if form == "json":
        return Response(_text({"feedback": found}), media_type="application/json")
    lines = "".join(_text(one) + "\n" for one in found)
    return Response(lines, media_type="application/x-ndjson")


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
