"""LangServe's HTTP convention (0.3) for the agent, served by us since LangServe is archived."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeVar, cast

from fastapi import APIRouter, Depends, Path
from fastapi.exceptions import RequestValidationError
from langchain_core.runnables import RunnableConfig, RunnableGenerator
from langchain_core.runnables.config import get_async_callback_manager_for_config
from langchain_core.runnables.utils import AddableDict
from langchain_core.tracers.log_stream import LogStreamCallbackHandler, _astream_log_implementation
from pydantic import ValidationError
from sse_starlette import EventSourceResponse
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from core.auth import AuthContext
from core.errors import CallerError
from core.settings import Settings
from serve.errors import Failure, failure_of, note_failure, route_with
from serve.protocols.langserve_schemas import (
    AgentConfig,
    AgentInput,
    AgentOutput,
    BatchRequest,
    BatchResponse,
    FailureDetail,
    FilteredRequest,
    InvokeRequest,
    InvokeResponse,
    config_of,
    question_of,
)
from serve.questions import AnswerText, Question, RunEvent, Runner
from serve.runs.following import (
    FollowedRun,
    begin_run,
    cancel_when_gone,
    event_stream,
    json_text,
    result_of,
)
from serve.services import check_standing, while_standing

BATCH = 64  # inputs that one LangServe batch may hold; chosen, not measured
BATCH_AT_ONCE = 2  # of them answered at once; chosen, not measured

AGENT = "/agent"  # the path, which is the name of the run as well
Chunks = AsyncIterator[AddableDict]
RunEvents = AsyncIterator[RunEvent]
T = TypeVar("T")


async def chunks_of(events: RunEvents) -> Chunks:
    """Yield dicts that add up to the result: sentences of the answer, then all the rest."""
    answer = AnswerText()
    async for event in events:
        if piece := answer.piece(event):
            yield AddableDict(answer=piece)
        if event.kind == "result":
            rest = answer.rest(str(event.data["answer"]))
            yield AddableDict({**event.data, "answer": rest})


def agent_of(events: RunEvents) -> RunnableGenerator[Any, AddableDict]:
    """Return a runnable whose one run is the one followed; each step is a run within it."""

    async def transform(inputs: AsyncIterator[Any], config: RunnableConfig) -> Chunks:
        async for _ in inputs:  # the run has begun with it
            pass
        manager = get_async_callback_manager_for_config(config)

        async def watched() -> RunEvents:
            async for event in events:
                if event.kind == "step":
                    given = {"arguments": event.data.get("arguments", {})}
                    step = await manager.on_chain_start(None, given, name=event.data["node"])
                    await step.on_chain_end(event.data)
                yield event

        async for chunk in chunks_of(watched()):
            yield chunk

    return RunnableGenerator(cast(Any, transform), name=AGENT)


async def patches_of(events: RunEvents, request: FilteredRequest) -> AsyncIterator[dict[str, Any]]:
    """Yield the log of the run as LangServe sends it: patches (RFC 6902)."""
    # `astream_log` is this, and a warning that version 2 of langchain-core will not have it.
    log = LogStreamCallbackHandler(
        auto_close=False, _schema_format="original", **cast(Any, request.filters())
    )
    given, named = request.input.model_dump(), RunnableConfig(run_name=AGENT)
    patches = _astream_log_implementation(agent_of(events), given, named, stream=log, diff=True)
    async for patch in patches:
        yield {"ops": patch.ops}


def events_of(events: RunEvents, request: FilteredRequest) -> AsyncIterator[Any]:
    """Yield LangChain's events (version 2) of the run and of the steps within it."""
    given, named = request.input.model_dump(), RunnableConfig(run_name=AGENT)
    filters = cast(Any, request.filters())
    return agent_of(events).astream_events(given, named, version="v2", **filters)


@dataclass(frozen=True)
class Agent:
    """Ask the runner for what one request wants; `path` is the configuration in its path."""

    runner: Runner
    settings: Settings
    request: Request
    auth: AuthContext
    path: AgentConfig

    async def answer(self, given: AgentInput, config: AgentConfig | None) -> dict[str, Any]:
        """Return the result of one question; cancelled with the task that waits for it."""
        run = FollowedRun(self.runner, self._question(given, config), self.auth)
        try:
            return await result_of(run, [])
        finally:
            run.close()

    async def answers(self, body: BatchRequest) -> list[dict[str, Any]]:
        """Return the results of a batch, of what failed the failure.

        Raises the first failure when nothing was answered.
        """
        configs = self._configs(body)
        places = asyncio.Semaphore(BATCH_AT_ONCE)

        async def one(given: AgentInput, config: AgentConfig | None) -> dict[str, Any]:
            async with places:
                return await self.answer(given, config)

        pairs = zip(body.inputs, configs, strict=True)
        tasks = [asyncio.ensure_future(one(given, config)) for given, config in pairs]
        try:
            found = await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            for task in tasks:
                task.cancel()
        failed = [one for one in found if isinstance(one, BaseException)]
        if failed and len(failed) == len(found):
            raise failed[0]
        return [self._failure(one) if isinstance(one, BaseException) else one for one in found]

    async def stream(
        self,
        body: InvokeRequest,
        values: Callable[[RunEvents], AsyncIterator[Any]],
        *first: dict[str, str],
    ) -> Response:
        """Stream the first events, then the values of a run, in a response.

        The run's first event is there, so that what keeps it out has a status.
        """
        question = self._question(body.input, body.config)
        run = await cancel_when_gone(self.request, begin_run(self.runner, question, self.auth))
        sent = _send_events(self.request, run, values(while_standing(self.request, run)), *first)
        return event_stream(sent, run, self.settings)

    async def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of `work`, if the client is still there and may still have it."""
        found = await cancel_when_gone(self.request, work)
        check_standing(self.request)
        return found

    def _failure(self, error: BaseException) -> dict[str, Any]:
        if not isinstance(error, Exception):
            raise error
        return {"error": _error_data(note_failure(failure_of(error), self.request))}

    def _question(self, given: AgentInput, config: AgentConfig | None) -> Question:
        return question_of(given, config.over(self.path) if config else self.path)

    def _configs(self, body: BatchRequest) -> list[AgentConfig | None]:
        if len(body.inputs) > BATCH:
            raise CallerError(
                f"a batch has at most {BATCH} inputs",
                value=len(body.inputs),
                hint="send several batches",
            )
        if not isinstance(body.config, list):
            return [body.config] * len(body.inputs)
        if len(body.config) != len(body.inputs):
            raise CallerError(
                "the number of configs must match the number of inputs",
                value=f"{len(body.config)} configs, {len(body.inputs)} inputs",
            )
        return list(body.config)


CONFIG_CHARS = 20000  # longest configuration in a LangServe path; chosen, not measured

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

    router, who = APIRouter(), Depends(caller)
    for below, config in (("", Depends(_unset)), ("/c/{config_hash}", Depends(from_path))):

        async def agent(
            request: Request, auth: AuthContext = who, path: AgentConfig = config
        ) -> Agent:
            return Agent(runner, settings, request, auth, path)

        router.include_router(_asking(AGENT + below, Depends(agent), [who], [config]))
    return router


async def _unset() -> AgentConfig:
    return AgentConfig()


def _asking(prefix: str, given: Any, who: list[Any], config: list[Any]) -> APIRouter:  # noqa: ANN401
    """Return the routes under one prefix; all but it are dependencies, `given` is the agent."""
    router = APIRouter(
        prefix=prefix,
        tags=["agent"],
        route_class=route_with(_error_response),
        responses=FAILURES,
        dependencies=who,
    )

    @router.post("/invoke", response_model=InvokeResponse)
    async def invoke(body: InvokeRequest, agent: Agent = given) -> Response:
        """Answer one question."""
        output = await agent.finish(agent.answer(body.input, body.config))
        return _json({"output": output, "metadata": _metadata()})

    @router.post("/batch", response_model=BatchResponse)
    async def batch(body: BatchRequest, agent: Agent = given) -> Response:
        """Answer several questions."""
        outputs = await agent.finish(agent.answers(body))
        named = [_metadata() for _ in outputs]
        run_ids = [one["run_id"] for one in named]
        return _json({"output": outputs, "metadata": {"responses": named, "run_ids": run_ids}})

    @router.post("/stream", response_class=EventSourceResponse)
    async def stream(body: InvokeRequest, agent: Agent = given) -> Response:
        """Answer one question in pieces that add up to the output."""
        named = json_text({"run_id": str(uuid.uuid4())})
        return await agent.stream(body, chunks_of, {"event": "metadata", "data": named})

    @router.post("/stream_log", response_class=EventSourceResponse)
    async def stream_log(body: FilteredRequest, agent: Agent = given) -> Response:
        """Answer one question in patches (RFC 6902) of its run's log."""
        return await agent.stream(body, partial(patches_of, request=body))

    @router.post("/stream_events", response_class=EventSourceResponse)
    async def stream_events(body: FilteredRequest, agent: Agent = given) -> Response:
        """Answer one question in events of its run and of the steps within it."""
        return await agent.stream(body, partial(events_of, request=body))

    for name, model in SCHEMAS.items():
        router.add_api_route(
            f"/{name}", _schema(model), methods=["GET"], name=name, dependencies=config
        )
    return router


SCHEMAS = {"input_schema": AgentInput, "output_schema": AgentOutput, "config_schema": AgentConfig}


def _schema(model: Any) -> Callable[[], dict[str, Any]]:  # noqa: ANN401  # a pydantic class
    def schema() -> dict[str, Any]:
        return dict(model.model_json_schema())

    schema.__doc__ = f"Return the JSON schema of {model.__name__}."
    return schema


async def _send_events(
    request: Request, run: FollowedRun, values: AsyncIterator[Any], *first: dict[str, str]
) -> Events:
    """Yield the events of a stream: the first ones, the values, and how it ended."""
    try:
        for event in first:
            yield event
        async for value in values:
            check_standing(request)  # LangChain may have read ahead
            yield {"event": "data", "data": json_text(value)}
        yield {"event": "end"}
    except Exception as error:
        data = _error_data(note_failure(failure_of(error), request))
        yield {"event": "error", "data": json_text(data)}
    finally:
        run.close()


def _error_data(failure: Failure) -> dict[str, Any]:
    """Return a failure as LangServe's streams report it."""
    return {"status_code": failure.status, "message": failure.message}


def _metadata() -> dict[str, Any]:
    return {"run_id": str(uuid.uuid4()), "feedback_tokens": []}


def _json(content: dict[str, Any]) -> Response:
    return Response(json_text(content), media_type="application/json")


def _error_response(failure: Failure) -> Response:
    """Answer as LangServe does: FastAPI's `detail`, without the values it was given."""
    detail: Any = failure.message
    if failure.problems:
        detail = [
            {"type": one.kind, "loc": list(one.where), "msg": one.message}
            for one in failure.problems
        ]
    return JSONResponse({"detail": detail}, failure.status, dict(failure.headers))
