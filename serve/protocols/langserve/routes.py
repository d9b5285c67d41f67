"""LangServe's HTTP convention (0.3) for the agent, served by us since LangServe is archived.

`langserve_router` holds `/agent/…` and the same under `/agent/c/{config_hash}/…`.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from sse_starlette import EventSourceResponse
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from core.auth import AuthContext
from core.settings import Settings
from serve.depends import check_standing, while_standing
from serve.failures import Failure, failure_of, noted, route_with
from serve.protocols.event_stream import event_stream, json_text
from serve.protocols.langserve.agent import AGENT, Agent, chunks_of, events_of, patches_of
from serve.protocols.langserve.hash import config_of
from serve.protocols.langserve.schemas import (
    AgentConfig,
    AgentInput,
    AgentOutput,
    BatchRequest,
    BatchResponse,
    FailureDetail,
    FilteredRequest,
    InvokeRequest,
    InvokeResponse,
)
from serve.runs.disconnect import unless_gone
from serve.runs.following import Following
from serve.types import Runner

CONFIG_CHARS = 20000  # longest configuration in a LangServe path

Caller = Callable[[Request], AuthContext | Awaitable[AuthContext]]
Events = AsyncIterator[dict[str, str]]
FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": FailureDetail} for status in (400, 401, 403, 413, 422, 429, 500, 503)
}


def langserve_router(runner: Runner, caller: Caller, settings: Settings) -> APIRouter:
    """Return the routes; `caller` is the dependency that verifies who asks."""

    def from_path(
        config_hash: Annotated[str, Path(description="The config as JSON, by lz-string.")],
    ) -> AgentConfig:
        given = config_of(config_hash, CONFIG_CHARS)
        try:
            return AgentConfig.model_validate(given)
        except ValidationError as error:
            raise RequestValidationError(error.errors(include_url=False)) from None

    agent = Agent(runner, settings)
    router = APIRouter()
    who = Depends(caller)
    router.include_router(_asking(AGENT, Depends(_unset), agent, who))
    router.include_router(_asking(AGENT + "/c/{config_hash}", Depends(from_path), agent, who))
    return router


async def _unset() -> AgentConfig:
    return AgentConfig()


def _asking(prefix: str, config: Any, agent: Agent, who: Any) -> APIRouter:  # noqa: ANN401
    """Return the routes under one prefix; `config` and `who` are dependencies."""
    router = APIRouter(
        prefix=prefix,
        tags=["agent"],
        route_class=route_with(_failed),
        responses=FAILURES,
        dependencies=[who],
    )

    @router.post("/invoke", response_model=InvokeResponse)
    async def invoke(
        body: InvokeRequest,
        request: Request,
        auth: AuthContext = who,
        path: AgentConfig = config,
    ) -> Response:
        """Answer one question."""
        output = await unless_gone(request, agent.answer(body.input, body.config, path, auth))
        check_standing(request)
        return _json({"output": output, "metadata": _metadata()})

    @router.post("/batch", response_model=BatchResponse)
    async def batch(
        body: BatchRequest,
        request: Request,
        auth: AuthContext = who,
        path: AgentConfig = config,
    ) -> Response:
        """Answer several questions."""
        outputs = await unless_gone(request, agent.answers(body, path, auth))
        check_standing(request)
        named = [_metadata() for _ in outputs]
        run_ids = [one["run_id"] for one in named]
        return _json({"output": outputs, "metadata": {"responses": named, "run_ids": run_ids}})

    _add_streams(router, config, agent, who)
    for name, model in SCHEMAS.items():
        router.add_api_route(
            f"/{name}", _schema(model), methods=["GET"], name=name, dependencies=[config]
        )
    return router


def _add_streams(router: APIRouter, config: Any, agent: Agent, who: Any) -> None:  # noqa: ANN401
    @router.post("/stream", response_class=EventSourceResponse)
    async def stream(
        body: InvokeRequest,
        request: Request,
        auth: AuthContext = who,
        path: AgentConfig = config,
    ) -> Response:
        """Answer one question in pieces that add up to the output."""
        run = await unless_gone(request, agent.begun(body.input, body.config, path, auth))
        run_id = json_text({"run_id": str(uuid.uuid4())})
        first = {"event": "metadata", "data": run_id}
        return event_stream(
            _sent(request, run, chunks_of(while_standing(request, run)), first), run, agent.settings
        )

    @router.post("/stream_log", response_class=EventSourceResponse)
    async def stream_log(
        body: FilteredRequest,
        request: Request,
        auth: AuthContext = who,
        path: AgentConfig = config,
    ) -> Response:
        """Answer one question in patches (RFC 6902) of its run's log."""
        run = await unless_gone(request, agent.begun(body.input, body.config, path, auth))
        return event_stream(
            _sent(request, run, patches_of(while_standing(request, run), body)), run, agent.settings
        )

    @router.post("/stream_events", response_class=EventSourceResponse)
    async def stream_events(
        body: FilteredRequest,
        request: Request,
        auth: AuthContext = who,
        path: AgentConfig = config,
    ) -> Response:
        """Answer one question in events of its run and of the steps within it."""
        run = await unless_gone(request, agent.begun(body.input, body.config, path, auth))
        return event_stream(
            _sent(request, run, events_of(while_standing(request, run), body)), run, agent.settings
        )


SCHEMAS = {"input_schema": AgentInput, "output_schema": AgentOutput, "config_schema": AgentConfig}


def _schema(model: Any) -> Callable[[], dict[str, Any]]:  # noqa: ANN401  # a pydantic class
    def schema() -> dict[str, Any]:
        return dict(model.model_json_schema())

    schema.__doc__ = f"Return the JSON schema of {model.__name__}."
    return schema


async def _sent(
    request: Request, run: Following, values: AsyncIterator[Any], *first: dict[str, str]
) -> Events:
    """Yield the events of a stream: what comes first, the values, and how it ended."""
    try:
        for event in first:
            yield event
        async for value in values:
            check_standing(request)  # LangChain may have read ahead
            yield {"event": "data", "data": json_text(value)}
        yield {"event": "end"}
    except Exception as error:
        failure = noted(failure_of(error), request)
        told = {"status_code": failure.status, "message": failure.message}
        yield {"event": "error", "data": json_text(told)}
    finally:
        run.close()


def _metadata() -> dict[str, Any]:
    return {"run_id": str(uuid.uuid4()), "feedback_tokens": []}


def _json(content: dict[str, Any]) -> Response:
    return Response(json_text(content), media_type="application/json")


def _failed(failure: Failure) -> Response:
    """Answer as LangServe does: FastAPI's `detail`, without the values it was given."""
    detail: Any = failure.message
    if failure.problems:
        detail = [
            {"type": one.kind, "loc": list(one.where), "msg": one.message}
            for one in failure.problems
        ]
    return JSONResponse({"detail": detail}, failure.status, dict(failure.headers))
