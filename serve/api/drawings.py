"""Drawings as SVG: the graph, the path of a run through it, and the run's plan."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from display.html import Markup
from display.path import graph_drawing, path_drawing
from display.plan_drawing import outcome_of, plan_drawing, plan_of
from serve.api.runs import RunId, own_run
from serve.depends import Caller, Parts
from serve.errors import NotFound

router = APIRouter(prefix="/api/v1", tags=["drawings"])

SVG = "image/svg+xml"
DRAWN: dict[int | str, dict[str, Any]] = {
    200: {"content": {SVG: {"schema": {"type": "string"}}}, "description": "A drawing."}
}


@router.get("/graph.svg", response_class=Response, responses=DRAWN)
async def graph(auth: Caller, parts: Parts) -> Response:
    """Draw the graph: every node of a run and every way between them."""
    return _drawn(await parts.runner.do(auth, graph_drawing))


@router.get("/runs/{run_id}/graph.svg", response_class=Response, responses=DRAWN)
async def run_graph(run_id: RunId, auth: Caller, parts: Parts) -> Response:
    """Draw the path of one run of the caller over the graph, with how often it went each way."""
    store = parts.session.runs

    def make() -> Markup:
        return path_drawing(own_run(store, auth, run_id))

    return _drawn(await parts.runner.do(auth, make))


@router.get("/runs/{run_id}/plan.svg", response_class=Response, responses=DRAWN)
async def run_plan(run_id: RunId, auth: Caller, parts: Parts) -> Response:
    """Draw the plan of one run of the caller: questions, values found, what was not answered."""
    store = parts.session.runs

    def make() -> Markup:
        run = own_run(store, auth, run_id)
        plan = plan_of(run)
        if not plan.questions:
            raise NotFound("this run ended before it had a plan", value=run_id)
        return plan_drawing(plan, outcome_of(run))

    return _drawn(await parts.runner.do(auth, make))


def _drawn(markup: Markup) -> Response:
    return Response(markup, media_type=SVG)
