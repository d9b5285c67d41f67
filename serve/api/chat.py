"""POST /api/v1/chat and /search: a question in, an answer or ranked passages out."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Literal, Self

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, model_validator

from core.auth import AuthContext
from core.errors import CarrelError
from core.types import FrozenModel
from graph.context import PipelineName
from serve.access.guard import unexpected_body
from serve.errors import error_body
from serve.protocols.langserve_schemas import AgentOutput
from serve.questions import Question, Utterance, turns_of
from serve.runs.following import FollowedRun, begin_run, cancel_when_gone, event_stream
from serve.searching import (
    Collections,
    Filters,
    SearchName,
    describe_passages,
    search_on_record,
)
from serve.services import AppState, Caller, Services, check_standing, while_standing
from serve.telemetry.logs import log

router = APIRouter(prefix="/api/v1")

# What the page of all routes says of answers that FastAPI does not see as models.
ANSWERED: dict[str, Any] = {
    "model": AgentOutput,
    "description": "The answer or the refusal; with `stream` events that end with it.",
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
}

MAX_MESSAGES = 200  # of a dialogue in one request; chosen, not measured


class Passage(FrozenModel):
    """Hold one passage found; `score` is comparable within one search only."""

    document_id: str
    source: str
    chunk_id: str
    score: float
    text: str
    title: str
    section: str
    page: int | None
    language: str
    version: str
    updated_at: str
    scores: dict[str, float]
    metadata: dict[str, Any]
    collection: str


class Passages(FrozenModel):
    """Hold passages, best first."""

    results: list[Passage]
    warnings: list[str]


FOUND: dict[str, Any] = {"model": Passages, "description": "Passages, best first."}


class DialogueMessage(BaseModel):
    """Hold one earlier message of the dialogue."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["user", "assistant"]
    content: str


class AgentChatRequest(BaseModel):
    """Ask a question; `messages` are what was said before it, oldest first.

    It may be about several collections, and only about documents that meet all filters of `where`.
    With `conversation_id` it is the next one of that conversation, which knows what was said
    before and has its own collection; with `clarify` the run may end by asking back.
    """

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1)
    collection: Collections = "default"
    messages: list[DialogueMessage] = Field(default_factory=list, max_length=MAX_MESSAGES)
    pipeline: PipelineName = "auto"
    stream: bool = False
    conversation_id: str | None = Field(None, min_length=1, max_length=64)
    clarify: bool = False
    where: Filters = Field(default_factory=list)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.conversation_id is not None and self.messages:
            raise ValueError("a conversation knows its messages: leave them out")
        if self.clarify and self.conversation_id is None:
            raise ValueError("clarify needs a conversation_id: the reply goes on there")
        return self

    def to_question(self) -> Question:
        """Return the question; a conversation's collection need not be named."""
        history = turns_of(Utterance(message.role, message.content) for message in self.messages)
        named = self.conversation_id is None or "collection" in self.model_fields_set
        return Question(
            self.question,
            self.collection if named else "",
            history,
            self.pipeline,
            conversation=self.conversation_id or "",
            clarify=self.clarify,
            where=tuple(self.where),
        )


@router.post("/chat", tags=["chat"], response_model=None, responses={200: ANSWERED})
async def chat(
    body: AgentChatRequest, request: Request, auth: Caller, services: Services
) -> Response:
    """Answer a question, with citations, or refuse it honestly.

    With `stream` the events are `step`, `rules`, `sentence`, `token`, at the end `result` or
    `error`.
    """
    question = body.to_question()
    if body.stream:
        followed = await cancel_when_gone(request, begin_run(services.runner, question, auth))
        return event_stream(_lines(followed, request), followed, services.settings, sep="\n")
    run = await cancel_when_gone(request, services.runner.run(question, auth))
    check_standing(request)
    return JSONResponse(run.result)


async def _lines(run: FollowedRun, request: Request) -> AsyncIterator[dict[str, str]]:
    request_id = request.scope["carrel.id"]
    try:
        async for event in while_standing(request, run):
            yield _line(event.kind, event.data)
    except CarrelError as error:
        yield _line("error", error_body(error, request_id))
    except Exception:  # the status is sent: this is all that can still be reported
        log.exception("unexpected", extra={"id": request_id})
        yield _line("error", unexpected_body(request_id))
    finally:
        run.close()


def _line(kind: str, data: object) -> dict[str, str]:
    return {"event": kind, "data": json.dumps(data, ensure_ascii=False)}


class SearchRequest(BaseModel):
    """Look for passages; `k` of them at most, of documents that meet all filters of `where`."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(min_length=1)
    collection: Collections = "default"
    pipeline: SearchName = "hybrid"
    k: int = Field(10, ge=1, le=100)
    where: Filters = Field(default_factory=list)


@router.post("/search", tags=["search"], response_model=None, responses={200: FOUND})
async def search(
    body: SearchRequest, request: Request, auth: Caller, services: Services
) -> Response:
    """Return passages, best first, as `carrel search --json` does."""
    work = partial(_search_and_record, services, auth, body)
    return JSONResponse(await cancel_when_gone(request, services.runner.do(auth, work)))


def _search_and_record(
    services: AppState, auth: AuthContext, body: SearchRequest
) -> dict[str, Any]:
    wanted = (body.query, body.collection, body.pipeline, body.k, body.where)
    return describe_passages(services.session, search_on_record(services, auth, *wanted))
