"""A run shown as a LangChain runnable, so that LangChain itself writes its logs and events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig, RunnableGenerator
from langchain_core.runnables.config import get_async_callback_manager_for_config
from langchain_core.runnables.utils import AddableDict
from langchain_core.tracers.log_stream import LogStreamCallbackHandler, _astream_log_implementation

from core.auth import AuthContext
from core.errors import CallerError
from core.settings import Settings
from serve.protocols.dialogue import AnswerText
from serve.protocols.langserve.schemas import (
    AgentConfig,
    AgentInput,
    BatchRequest,
    FilteredRequest,
    question_of,
)
from serve.runs.following import Following, begun, result_of
from serve.types import RunEvent, Runner

BATCH = 64  # inputs that one LangServe batch may hold
BATCH_AT_ONCE = 2  # of them answered at once

AGENT = "/agent"  # the path, which is the name of the run as well
Chunks = AsyncIterator[AddableDict]
Events = AsyncIterator[RunEvent]


async def chunks_of(events: Events) -> Chunks:
    """Yield dicts that add up to the result: sentences of the answer, then all the rest."""
    answer = AnswerText()
    async for event in events:
        if piece := answer.piece(event):
            yield AddableDict(answer=piece)
        if event.kind == "result":
            rest = answer.rest(str(event.data["answer"]))
            yield AddableDict({**event.data, "answer": rest})


def agent_of(events: Events) -> RunnableGenerator[Any, AddableDict]:
    """Return a runnable whose one run is the one followed; each step is a run within it."""

    async def transform(inputs: AsyncIterator[Any], config: RunnableConfig) -> Chunks:
        async for _ in inputs:  # the run has begun with it
            pass
        manager = get_async_callback_manager_for_config(config)

        async def watched() -> Events:
            async for event in events:
                if event.kind == "step":
                    given = {"arguments": event.data.get("arguments", {})}
                    step = await manager.on_chain_start(None, given, name=event.data["node"])
                    await step.on_chain_end(event.data)
                yield event

        async for chunk in chunks_of(watched()):
            yield chunk

    return RunnableGenerator(cast(Any, transform), name=AGENT)


async def patches_of(events: Events, request: FilteredRequest) -> AsyncIterator[dict[str, Any]]:
    """Yield the log of the run as LangServe sends it: patches (RFC 6902)."""
    # `astream_log` is this, and a warning that version 2 of langchain-core will not have it.
    log = LogStreamCallbackHandler(
        auto_close=False, _schema_format="original", **cast(Any, request.filters())
    )
    given, named = request.input.model_dump(), RunnableConfig(run_name=AGENT)
    patches = _astream_log_implementation(agent_of(events), given, named, stream=log, diff=True)
    async for patch in patches:
        yield {"ops": patch.ops}


def events_of(events: Events, request: FilteredRequest) -> AsyncIterator[Any]:
    """Yield LangChain's events (version 2) of the run and of the steps within it."""
    given, named = request.input.model_dump(), RunnableConfig(run_name=AGENT)
    filters = cast(Any, request.filters())
    return agent_of(events).astream_events(given, named, version="v2", **filters)


@dataclass(frozen=True)
class Agent:
    """Ask the runner for what requests want."""

    runner: Runner
    settings: Settings

    async def answer(
        self, given: AgentInput, config: AgentConfig | None, path: AgentConfig, auth: AuthContext
    ) -> dict[str, Any]:
        """Return the result of one question; cancelled with the task that waits for it."""
        run = Following(self.runner, question_of(given, _over(config, path)), auth)
        try:
            return await result_of(run, [])
        finally:
            run.close()

    async def answers(
        self, body: BatchRequest, path: AgentConfig, auth: AuthContext
    ) -> list[dict[str, Any]]:
        """Return the results of a batch; the first failure is the whole batch's."""
        configs = self._configs(body)
        places = asyncio.Semaphore(BATCH_AT_ONCE)

        async def one(given: AgentInput, config: AgentConfig | None) -> dict[str, Any]:
            async with places:
                return await self.answer(given, config, path, auth)

        pairs = zip(body.inputs, configs, strict=True)
        tasks = [asyncio.ensure_future(one(given, config)) for given, config in pairs]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()

    def _configs(self, body: BatchRequest) -> list[AgentConfig | None]:
        limit = BATCH
        if len(body.inputs) > limit:
            raise CallerError(
                f"a batch has at most {limit} inputs",
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

    async def begun(
        self, given: AgentInput, config: AgentConfig | None, path: AgentConfig, auth: AuthContext
    ) -> Following:
        """Return a run whose first event is there, so that what keeps it out has a status."""
        return await begun(self.runner, question_of(given, _over(config, path)), auth)


def _over(config: AgentConfig | None, path: AgentConfig) -> AgentConfig:
    return config.over(path) if config else path
