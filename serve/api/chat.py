"""POST /api/v1/chat: a question in, an answer out, whole or as a stream of events."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from graph.context import PipelineName
from serve.api.shapes import ANSWERED
from serve.depends import Asking, Caller, Parts
from serve.dialogue import Said, turns_of
from serve.disconnect import unless_gone
from serve.sse import event_stream
from serve.types import Question

MAX_MESSAGES = 200

router = APIRouter(prefix="/api/v1", tags=["chat"])


class Message(BaseModel):
    """Hold one earlier message of the dialogue."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["user", "assistant"]
    content: str


class ChatRequest(BaseModel):
    """Ask a question; `messages` are what was said before it, oldest first."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1)
    collection: str = "default"
    messages: list[Message] = Field(default_factory=list, max_length=MAX_MESSAGES)
    pipeline: PipelineName = "auto"
    stream: bool = False


@router.post("/chat", response_model=None, responses={200: ANSWERED})
async def chat(
    body: ChatRequest, request: Request, auth: Caller, asking: Asking, parts: Parts
) -> Response:
    """Answer a question, with citations, or refuse it honestly.

    With `stream` the events are `step`, `sentence`, `token`, at the end `result` or `error`.
    """
    history = turns_of(Said(message.role, message.content) for message in body.messages)
    question = Question(body.question, body.collection, history, body.pipeline)
    if body.stream:
        return await event_stream(request, asking.stream(question, auth), parts.settings)
    run = await unless_gone(request, asking.run(question, auth))
    return JSONResponse(run.result)
