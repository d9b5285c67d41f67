"""OpenAI's chat completions and models over the agent, for clients that speak nothing else."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from core.auth import AuthContext
from core.settings import Settings
from serve.errors import failure_of, note_failure, route_with
from serve.protocols.openai_schemas import (
    CONVERSATION_HEADER,
    FAILURES,
    NEW,
    Begin,
    ChatCompletionRequest,
    CompletionReply,
    ConversationHeader,
    ModelList,
    ModelReply,
    collection_of,
    continue_conversation,
    model_ids,
    question_of,
    show_clarification,
)
from serve.protocols.openai_schemas import openai_error as error_body
from serve.protocols.openai_schemas import openai_failure as failed
from serve.protocols.openai_sources import (
    Source,
    disarm_markdown,
    footer,
    search_results,
    sources_of,
    url_citations,
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

KEPT = ("conversation_id", "clarification")  # of a run within a conversation


def used(steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the tokens that chat models took; without a model there are none."""
    calls = [call for step in steps for call in step.get("calls", [])]
    prompt = sum(call["prompt_tokens"] for call in calls)
    written = sum(call["completion_tokens"] for call in calls)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "prompt_tokens_details": {"cached_tokens": sum(call["cached_tokens"] for call in calls)},
    }


@dataclass(frozen=True)
class Cited:
    """Hold the citations shown beside an answer, and the footer that ends it."""

    footer: str
    annotations: list[dict[str, Any]]
    beside: dict[str, Any]


def cite(text: str, result: dict[str, Any], *, with_footer: bool) -> Cited:
    """Return the citations of a text that holds the result's answer."""
    sources = sources_of(result)
    beside = {
        "citations": [source.url for source in sources],
        "search_results": search_results(sources),
        "carrel": {
            name: result[name]
            for name in ("run_id", "refused", "stop_reason", "missing", "warnings")
        }
        | {name: result[name] for name in KEPT if "conversation_id" in result},
    }
    annotations = url_citations(text, result, sources)
    return Cited(footer(sources) if with_footer else "", annotations, beside)


@dataclass(frozen=True)
class Completion:
    """Answer one request as it was asked for: name its completion and make its pieces."""

    model: str
    with_usage: bool
    with_footer: bool
    webui: bool
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    async def respond(self, runner: Runner, question: Question, auth: AuthContext) -> Response:
        """Return the response when the run has ended; cancelled with its task."""
        run = FollowedRun(runner, question, auth)
        steps: list[dict[str, Any]] = []
        try:
            result = show_clarification(await result_of(run, steps))
        finally:
            run.close()
        answer = disarm_markdown(result["answer"])
        shown = cite(answer, result, with_footer=self.with_footer)
        message = {
            "role": "assistant",
            "content": answer + shown.footer,
            "refusal": None,
            "annotations": shown.annotations,
        }
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        content = {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": used(steps),
            **shown.beside,
        }
        return Response(json_text(content), media_type="application/json")

    async def lines(self, run: FollowedRun, request: Request) -> AsyncIterator[dict[str, str]]:
        """Yield the events of the stream."""
        try:
            async for chunk in self.chunks(while_standing(request, run)):
                yield {"data": json_text(chunk)}
        except Exception as error:
            yield {"data": json_text(error_body(note_failure(failure_of(error), request)))}
        finally:
            run.close()
        yield {"data": "[DONE]"}

    async def chunks(self, run: AsyncIterator[RunEvent]) -> AsyncIterator[dict[str, Any]]:
        """Yield the chunks of a run."""
        steps: list[dict[str, Any]] = []
        answer = AnswerText()
        yield self.chunk({"role": "assistant", "content": ""})
        async for event in run:
            if event.kind == "step":
                steps.append(event.data)
                if self.webui:
                    yield self.event(status(event.data))
            if piece := answer.piece(event):
                yield self.chunk({"content": disarm_markdown(piece)})
            if event.kind == "result":
                for chunk in self._last(answer, show_clarification(event.data)):
                    yield chunk
        if self.with_usage:
            yield {**self._chunk([]), "usage": used(steps)}

    def _last(self, answer: AnswerText, result: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the rest of the text, then the chunk that ends it, with all citations."""
        rest = answer.rest(result["answer"])
        shown = cite(disarm_markdown(answer.shown), result, with_footer=self.with_footer)
        texts = (disarm_markdown(rest), shown.footer)
        chunks = [self.chunk({"content": text}) for text in texts if text]
        delta: dict[str, Any] = {}
        if self.webui:  # that page would list each annotation as one more source
            chunks += [self.event(source(one)) for one in sources_of(result)]
            ended = {"description": result["stop_reason"], "done": True}
            chunks.append(self.event({"type": "status", "data": ended}))
        else:
            delta["annotations"] = shown.annotations
        return [*chunks, {**self.chunk(delta, "stop"), **shown.beside}]

    def chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        """Return one chunk of a stream."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._chunk([choice])

    def event(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return a chunk that holds only an event of Open WebUI."""
        return {**self._chunk([]), "event": event}

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        chunk = {**self._head("chat.completion.chunk"), "choices": choices}
        # With usage asked for, OpenAI says in every chunk but the last that it has none.
        return {**chunk, "usage": None} if self.with_usage else chunk

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def status(step: dict[str, Any]) -> dict[str, Any]:
    """Return a step as a line of status."""
    description = ": ".join(part for part in (step["node"], step.get("reason", "")) if part)
    return {"type": "status", "data": {"description": description, "done": False}}


def source(found: Source) -> dict[str, Any]:
    """Return a source with its passage; the page numbers sources in the order they come."""
    name = " · ".join(part for part in (found.title, found.place) if part)
    metadata: dict[str, Any] = {"source": found.chunk_id, "name": name}
    if found.page is not None:
        metadata["page"] = found.page - 1  # that page counts from 0
    return {
        "type": "source",
        "data": {
            "source": {"id": found.chunk_id, "name": name, "url": found.url},
            "document": [found.text],
            "metadata": [metadata],
            "distances": [found.score],
        },
    }


Caller = Callable[[Request], AuthContext | Awaitable[AuthContext]]
Collections = Callable[[AuthContext], Sequence[str]]
EVENTS_HEADER = "X-Carrel-Events"
EventsHeader = Annotated[
    str | None,
    Header(
        alias=EVENTS_HEADER,
        description='"open-webui" as the field `carrel.events`.',
        pattern=r"^[!-~]*$",
    ),
]


def openai_router(
    runner: Runner, caller: Caller, collections: Collections, settings: Settings, begin: Begin
) -> APIRouter:
    """Return the routes under `/v1`.

    `caller` is the dependency that verifies who asks; `collections` names what a caller may ask;
    `begin` makes a conversation about one of them.
    """
    started = int(time.time())
    who = Depends(caller)
    router = APIRouter(
        prefix="/v1", tags=["openai"], route_class=route_with(failed), responses=FAILURES
    )

    @router.get("/models", response_model=ModelList)
    async def models(auth: AuthContext = who) -> dict[str, Any]:
        """List the models: one that asks the default collection, and one for each collection."""
        names = await run_in_threadpool(collections, auth)
        return {"object": "list", "data": [_model(name, started) for name in model_ids(names)]}

    @router.get("/models/{model}", response_model=ModelReply)
    async def model(model: str, auth: AuthContext = who) -> dict[str, Any]:
        """Return one model."""
        collection_of(model, await run_in_threadpool(collections, auth))
        return _model(model, started)

    @router.post("/chat/completions", response_model=CompletionReply)
    async def chat_completions(
        body: ChatCompletionRequest,
        request: Request,
        auth: AuthContext = who,
        events: EventsHeader = None,
        conversation: ConversationHeader = None,
    ) -> Response:
        """Answer the last message of the user, at once or as a stream."""
        question = question_of(body, await run_in_threadpool(collections, auth))
        if conversation == NEW:
            conversation = await run_in_threadpool(begin, auth, question.collection)
        if conversation is not None:
            question = continue_conversation(question, body.model, conversation)
        wanted = body.carrel.sources
        chat = Completion(
            body.model,
            with_usage=bool(body.stream) and body.with_usage,
            with_footer=settings.serve.openai_sources if wanted is None else wanted,
            webui="open-webui" in (events, body.carrel.events),
        )
        if body.stream:
            run = await cancel_when_gone(request, begin_run(runner, question, auth))
            response: Response = event_stream(chat.lines(run, request), run, settings)
        else:
            response = await cancel_when_gone(request, chat.respond(runner, question, auth))
            check_standing(request)
        if conversation is not None:
            response.headers[CONVERSATION_HEADER] = conversation
        return response

    return router


def _model(name: str, created: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created, "owned_by": "carrel"}
