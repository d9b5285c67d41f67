"""What OpenAI clients get, as schemas for the description of the API."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel


class ModelReply(BaseModel):
    """Describe one model: a collection that can be asked."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(BaseModel):
    """List the models of a caller."""

    object: Literal["list"]
    data: list[ModelReply]


class UrlCitation(BaseModel):
    """Say where a mark stands in the content (code points), and what it points to."""

    start_index: int
    end_index: int
    title: str
    url: str


class Annotation(BaseModel):
    """Annotate a mark."""

    type: Literal["url_citation"]
    url_citation: UrlCitation


class ReplyMessage(BaseModel):
    """Hold the answer, or the honest refusal, as a message."""

    role: Literal["assistant"]
    content: str
    refusal: str | None
    annotations: list[Annotation]


class Choice(BaseModel):
    """Hold the one choice there is."""

    index: int
    message: ReplyMessage
    logprobs: None
    finish_reason: Literal["stop"]


class CachedTokens(BaseModel):
    """Count the tokens of prompts that the model's server had cached."""

    cached_tokens: int


class TokenUsage(BaseModel):
    """Count the tokens of chat models; 0 where none decides."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens


class SearchResult(BaseModel):
    """Hold one source; `snippet` is the sentence that is cited."""

    title: str
    url: str
    date: str | None
    snippet: str


class RunSummary(BaseModel):
    """Name the run and say how it ended."""

    run_id: str
    refused: bool
    stop_reason: str
    missing: list[str]
    warnings: list[str]


class CompletionReply(BaseModel):
    """Hold a chat completion; `citations` and `search_results` are in the order of the marks."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: TokenUsage
    citations: list[str]
    search_results: list[SearchResult]
    carrel: RunSummary


class ErrorDetail(BaseModel):
    """Say what went wrong, and with which field."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorReply(BaseModel):
    """Hold an error."""

    error: ErrorDetail


FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorReply} for status in (400, 401, 403, 404, 413, 429, 500, 503)
}
