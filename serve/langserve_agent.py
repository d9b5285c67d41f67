"""A run shown as a LangChain runnable, so that LangChain itself writes its logs and events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

from langchain_core.runnables import RunnableConfig, RunnableGenerator
from langchain_core.runnables.config import get_async_callback_manager_for_config
from langchain_core.runnables.utils import AddableDict
from langchain_core.tracers.log_stream import (
    LogStreamCallbackHandler,
    _astream_log_implementation,
)

from serve.answer_text import AnswerText
from serve.langserve_schemas import FilteredRequest
from serve.types import RunEvent

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
