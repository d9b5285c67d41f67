"""GET /api/v1/runs: what a caller has asked, and every step of it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from core.auth import AuthContext
from core.errors import CallerError
from core.trace import RunRecord
from serve.depends import Caller, Parts
from serve.errors import NotFound
from stores.ports import RunLog

router = APIRouter(prefix="/api/v1", tags=["runs"])

RunId = Annotated[str, Path(max_length=64, description="Id of a run of the caller.")]


@router.get("/runs")
async def runs(
    auth: Caller, parts: Parts, limit: Annotated[int, Query(ge=1, le=200)] = 20
) -> dict[str, Any]:
    """List the caller's newest runs."""
    store = parts.session.runs
    found = await parts.runner.do(auth, lambda: store.newest(auth, limit))
    return {
        "runs": [
            run.model_dump(include={"run_id", "collection", "question", "pipeline", "created_at"})
            | {"refused": run.result.get("refused"), "stop_reason": run.result.get("stop_reason")}
            for run in found
        ]
    }


@router.get("/runs/{run_id}")
async def run(run_id: RunId, auth: Caller, parts: Parts) -> dict[str, Any]:
    """Return one run of the caller with its result and its trail, as far as they may see it now."""
    store = parts.session.runs
    found = await parts.runner.do(auth, lambda: own_run(store, auth, run_id))
    return found.model_dump(mode="json", exclude={"tenant", "user"})


def own_run(store: RunLog, auth: AuthContext, run_id: str) -> RunRecord:
    """Return a run of this caller by its whole id, or raise NotFound."""
    missing = NotFound("there is no such run of yours", value=run_id)
    try:
        found = store.load(auth, run_id)
    except CallerError:
        raise missing from None
    if found.run_id != run_id:
        raise missing  # "last", or the beginning of an id
    return found
