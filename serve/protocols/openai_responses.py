"""OpenAI's Responses over the agent; nothing is kept between two of them."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field, StrictBool
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from core.auth import AuthContext
from core.settings import Settings
from serve.errors import failure_of, note_failure, route_with
from serve.protocols.openai import cite, used
from serve.protocols.openai_schemas import (
    FAILURES,
    ChatMessage,
    ContentPart,
    RunSummary,
    SearchResult,
    collection_of,
    last_question,
    openai_error,
    openai_failure,
    refuse_unsupported,
)
from serve.protocols.openai_sources import disarm_markdown
from serve.questions import AnswerText, Question, RunEvent, Runner, Storable
from serve.runs.following import (
    FollowedRun,
    begin_run,
    cancel_when_gone,
    event_stream,
    json_text,
    result_of,
)
from serve.services import check_standing, while_standing

TEXTS = {"input_text", "output_text"}  # parts of messages that are text


class InputItem(BaseModel):
    """Hold one item of the input; what is no message (reasoning, calls of tools) is ignored."""

    type: str = "message"
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: str | list[ContentPart] | None = None

    def to_message(self) -> ChatMessage:
        """Return it as a message of a chat."""
        content = self.content
        if isinstance(content, list):
            content = [
                one.model_copy(update={"type": "text"}) if one.type in TEXTS else one
                for one in content
            ]
        role = self.role if self.type == "message" and self.role else "tool"
        return ChatMessage(role=role, content=content)


class ResponseRequest(Storable):
    """Ask a question; what steers how a model samples is accepted and ignored."""

    model: str
    input: str | list[InputItem]
    stream: StrictBool | None = None
    instructions: Any = Field(None, description="Ignored.")
    tools: list[Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    text: dict[str, Any] | None = None
    previous_response_id: str | None = None
    conversation: Any = None
    background: StrictBool | None = None
    prompt: Any = None
    store: StrictBool | None = Field(None, description="Ignored: nothing is kept by its id.")
    metadata: dict[str, str] | None = None

    def question(self, collections: Sequence[str]) -> Question:
        """Return the last message of the user as the question; raises OpenAIError."""
        form = (self.text or {}).get("format") or {}
        refuse_unsupported(
            tools=bool(self.tools),
            tool_choice=self.tool_choice not in (None, "none", "auto"),
            text__format=not isinstance(form, dict) or form.get("type", "text") != "text",
            previous_response_id=self.previous_response_id is not None,
            conversation=self.conversation is not None,
            background=bool(self.background),
            prompt=self.prompt is not None,
        )
        items = self.input
        if isinstance(items, str):
            items = [InputItem(role="user", content=items)]
        collection = collection_of(self.model, collections)
        return last_question([one.to_message() for one in items], collection, "input")


@dataclass(frozen=True)
class AgentResponse:
    """Make the response to one request, whole or as the events of a stream."""

    request: ResponseRequest
    id: str = field(default_factory=lambda: f"resp_{uuid.uuid4().hex}")
    message_id: str = field(default_factory=lambda: f"msg_{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    async def respond(self, runner: Runner, question: Question, auth: AuthContext) -> Response:
        """Return the response when the run has ended; cancelled with its task."""
        run = FollowedRun(runner, question, auth)
        steps: list[dict[str, Any]] = []
        try:
            result = await result_of(run, steps)
        finally:
            run.close()
        content = self._completed(disarm_markdown(result["answer"]), result, steps)
        return Response(json_text(content), media_type="application/json")

    async def lines(self, run: FollowedRun, request: Request) -> AsyncIterator[dict[str, str]]:
        """Yield the events of the stream, numbered."""
        number = 0
        async for kind, data in self._events(run, request):
            event = {"type": kind, "sequence_number": number, **data}
            yield {"event": kind, "data": json_text(event)}
            number += 1

    async def _events(
        self, run: FollowedRun, request: Request
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        for kind in ("response.created", "response.in_progress"):
            yield kind, {"response": self._response("in_progress")}
        try:
            async for event in self._answer(while_standing(request, run)):
                yield event
        except Exception as error:
            found = openai_error(note_failure(failure_of(error), request))["error"]
            failed = {"code": found["code"] or found["type"], "message": found["message"]}
            yield "response.failed", {"response": self._response("failed", error=failed)}
        finally:
            run.close()

    async def _answer(
        self, run: AsyncIterator[RunEvent]
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        item = {"item_id": self.message_id, "output_index": 0}
        place = {**item, "content_index": 0}
        yield "response.output_item.added", {"output_index": 0, "item": self._message(None)}
        yield "response.content_part.added", {**place, "part": _part("", [])}
        steps: list[dict[str, Any]] = []
        answer = AnswerText()
        async for event in run:
            if event.kind == "step":
                steps.append(event.data)
            piece = answer.piece(event)
            if event.kind == "result":
                piece = answer.rest(event.data["answer"])
            if piece:
                delta = {"delta": disarm_markdown(piece), "logprobs": []}
                yield "response.output_text.delta", {**place, **delta}
            if event.kind == "result":
                whole = self._completed(disarm_markdown(answer.shown), event.data, steps)
                for last in self._last(whole, place):
                    yield last

    def _last(
        self, whole: dict[str, Any], place: dict[str, Any]
    ) -> list[tuple[str, dict[str, Any]]]:
        [message] = whole["output"]
        [part] = message["content"]
        noted = [
            ("response.output_text.annotation.added", {**place, "annotation_index": n} | one)
            for n, one in enumerate({"annotation": one} for one in part["annotations"])
        ]
        return [
            *noted,
            ("response.output_text.done", {**place, "text": part["text"], "logprobs": []}),
            ("response.content_part.done", {**place, "part": part}),
            ("response.output_item.done", {"output_index": 0, "item": message}),
            ("response.completed", {"response": whole}),
        ]

    def _completed(
        self, text: str, result: dict[str, Any], steps: list[dict[str, Any]]
    ) -> dict[str, Any]:
        shown = cite(text, result, with_footer=False)
        annotations = [{"type": "url_citation", **one["url_citation"]} for one in shown.annotations]
        took = used(steps)
        usage = {
            "input_tokens": took["prompt_tokens"],
            "input_tokens_details": {**took["prompt_tokens_details"], "cache_write_tokens": 0},
            "output_tokens": took["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": took["total_tokens"],
        }
        output = [self._message(_part(text, annotations))]
        return {**self._response("completed", output, usage=usage), **shown.beside}

    def _message(self, part: dict[str, Any] | None) -> dict[str, Any]:
        return {
            "id": self.message_id,
            "type": "message",
            "role": "assistant",
            "status": "completed" if part else "in_progress",
            "content": [part] if part else [],
        }

    def _response(
        self, status: str, output: Sequence[dict[str, Any]] = (), **more: object
    ) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "model": self.request.model,
            "output": list(output),
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": self.request.metadata or {},
            "parallel_tool_calls": False,
            "previous_response_id": None,
            "store": False,
            "temperature": None,
            "text": {"format": {"type": "text"}},
            "tool_choice": "none",
            "tools": [],
            "top_p": None,
            "usage": None,
            **more,
        }


def _part(text: str, annotations: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}


class ResponseReply(BaseModel):
    """Hold a response: its one message has the answer, with a citation for each mark."""

    id: str
    object: Literal["response"]
    created_at: int
    status: Literal["completed"]
    model: str
    output: list[dict[str, Any]]
    usage: dict[str, Any]
    citations: list[str]
    search_results: list[SearchResult]
    carrel: RunSummary


def responses_router(
    runner: Runner,
    caller: Callable[[Request], Any],
    collections: Callable[[AuthContext], Sequence[str]],
    settings: Settings,
) -> APIRouter:
    """Return the route; `collections` names what a caller may ask."""
    who = Depends(caller)
    router = APIRouter(
        prefix="/v1", tags=["openai"], route_class=route_with(openai_failure), responses=FAILURES
    )

    @router.post("/responses", response_model=ResponseReply)
    async def responses(
        body: ResponseRequest, request: Request, auth: AuthContext = who
    ) -> Response:
        """Answer the last message of the user, at once or as a stream."""
        question = body.question(await run_in_threadpool(collections, auth))
        made = AgentResponse(body)
        if body.stream:
            run = await cancel_when_gone(request, begin_run(runner, question, auth))
            return event_stream(made.lines(run, request), run, settings)
        response = await cancel_when_gone(request, made.respond(runner, question, auth))
        check_standing(request)
        return response

    return router
