"""OpenAI's chat completions and models over the agent, for clients that speak nothing else."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from core.auth import AuthContext
from core.settings import Settings
from serve.depends import check_standing, while_standing
from serve.failures import failure_of, noted, route_with
from serve.protocols.dialogue import AnswerText
from serve.protocols.event_stream import event_stream, json_text
from serve.protocols.openai import replies
from serve.protocols.openai.errors import error_body, failed
from serve.protocols.openai.replies import Completion, cited
from serve.protocols.openai.requests import (
    CONVERSATION_HEADER,
    NEW,
    Begin,
    ChatCompletionRequest,
    ConversationHeader,
    collection_of,
    continued,
    model_ids,
    question_of,
    told,
)
from serve.protocols.openai.schemas import FAILURES, CompletionReply, ModelList, ModelReply
from serve.protocols.openai.sources import sources_of, unloaded
from serve.runs.disconnect import unless_gone
from serve.runs.following import Following, begun, result_of
from serve.types import Question, RunEvent, Runner

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
            question = continued(question, body.model, conversation)
        wanted = body.carrel.sources
        chat = Chat(
            completion=Completion(body.model, with_usage=bool(body.stream) and body.with_usage),
            footer=settings.serve.openai_sources if wanted is None else wanted,
            webui="open-webui" in (events, body.carrel.events),
        )
        if body.stream:
            run = await unless_gone(request, begun(runner, question, auth))
            response: Response = event_stream(chat.lines(run, request), run, settings)
        else:
            response = await unless_gone(request, chat.whole(runner, question, auth))
            check_standing(request)
        if conversation is not None:
            response.headers[CONVERSATION_HEADER] = conversation
        return response

    return router


def _model(name: str, created: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created, "owned_by": "carrel"}


@dataclass(frozen=True)
class Chat:
    """Answer one request as it was asked for."""

    completion: Completion
    footer: bool
    webui: bool

    async def whole(self, runner: Runner, question: Question, auth: AuthContext) -> Response:
        """Return the response when the run has ended; cancelled with its task."""
        run = Following(runner, question, auth)
        steps: list[dict[str, Any]] = []
        try:
            result = told(await result_of(run, steps))
        finally:
            run.close()
        content = self.completion.whole(result, steps, with_footer=self.footer)
        return Response(json_text(content), media_type="application/json")

    async def lines(self, run: Following, request: Request) -> AsyncIterator[dict[str, str]]:
        """Yield the events of the stream."""
        try:
            async for chunk in self.chunks(while_standing(request, run)):
                yield {"data": json_text(chunk)}
        except Exception as error:
            yield {"data": json_text(error_body(noted(failure_of(error), request)))}
        finally:
            run.close()
        yield {"data": "[DONE]"}

    async def chunks(self, run: AsyncIterator[RunEvent]) -> AsyncIterator[dict[str, Any]]:
        """Yield the chunks of a run."""
        made = self.completion
        steps: list[dict[str, Any]] = []
        answer = AnswerText()
        yield made.chunk({"role": "assistant", "content": ""})
        async for event in run:
            if event.kind == "step":
                steps.append(event.data)
                if self.webui:
                    yield made.event(replies.status(event.data))
            if piece := answer.piece(event):
                yield made.chunk({"content": unloaded(piece)})
            if event.kind == "result":
                for chunk in self._last(answer, told(event.data)):
                    yield chunk
        if made.with_usage:
            yield made.usage(steps)

    def _last(self, answer: AnswerText, result: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the rest of the text, then the chunk that ends it, with all citations."""
        made = self.completion
        rest = answer.rest(result["answer"])
        shown = cited(unloaded(answer.shown), result, with_footer=self.footer)
        texts = (unloaded(rest), shown.footer)
        chunks = [made.chunk({"content": text}) for text in texts if text]
        delta: dict[str, Any] = {}
        if self.webui:  # that page would list each annotation as one more source
            chunks += [made.event(replies.source(one)) for one in sources_of(result)]
            chunks.append(made.event(replies.finished(result["stop_reason"])))
        else:
            delta["annotations"] = shown.annotations
        return [*chunks, {**made.chunk(delta, "stop"), **shown.beside}]
