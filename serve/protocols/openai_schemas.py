"""What OpenAI clients send, the question in it, and what they get."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import Header
from pydantic import BaseModel, ConfigDict, Field, StrictBool
from starlette.responses import JSONResponse, Response

from core.auth import AuthContext
from core.types import Clarification
from reasoning.clarifying import clarification_text
from serve.errors import Failure, LimitExceeded, Refused, field_path
from serve.protocols.openai_sources import escape_markdown
from serve.questions import Question, Storable, Utterance, turns_of

CODES = {401: "invalid_api_key", 404: "not_found", 429: "rate_limit_exceeded", 503: "overloaded"}


class OpenAIError(Refused):
    """Refuse a request, naming the field and the code that OpenAI's server would give."""

    def __init__(
        self, status: int, message: str, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(status, code or "", message)
        self.param = param


def openai_error(failure: Failure) -> dict[str, Any]:
    """Return the body of an error, for a response or for the last event of a stream."""
    error, status = failure.error, failure.status
    kind = "server_error" if status >= 500 else "invalid_request_error"
    param = error.param if isinstance(error, OpenAIError) else None
    code = (error.code or None) if isinstance(error, Refused) else CODES.get(status)
    if failure.problems:
        param = field_path(failure.problems[0].where) or None
    return {
        "error": {
            "message": failure.message,
            "type": "rate_limit_error" if status == 429 else kind,
            "param": param,
            "code": code,
        }
    }


def openai_failure(failure: Failure) -> Response:
    """Answer as OpenAI does, which calls invalid fields a bad request (400)."""
    status = 400 if failure.problems else failure.status
    return JSONResponse(openai_error(failure), status, dict(failure.headers) | _limits(failure))


def _limits(failure: Failure) -> dict[str, str]:
    """Return the headers in which OpenAI's clients read how much is left."""
    error = failure.error
    if not isinstance(error, LimitExceeded):
        return {}
    unit = "tokens" if error.of_tokens else "requests"
    given = {name.rpartition("-")[2].lower(): value for name, value in error.headers.items()}
    return {
        f"x-ratelimit-limit-{unit}": given["limit"],
        f"x-ratelimit-remaining-{unit}": given["remaining"],
        f"x-ratelimit-reset-{unit}": f"{given['reset']}s",
    }


MODEL = "carrel"
DEFAULT_COLLECTION = "default"
FOOTER = re.compile(r"\n\n---\n(?:- \[\d+\] [^\n]*(?:\n|$))+$")


class ContentPart(BaseModel):
    """Hold one piece of a message; only pieces of text can be answered."""

    type: str
    text: str | None = None


class ChatMessage(BaseModel):
    """Hold one message; what is said by system, developer and tools is ignored."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None


class StreamOptions(BaseModel):
    """Say what a stream holds beside the answer."""

    include_usage: StrictBool = False


class CarrelOptions(BaseModel):
    """Hold what only Carrel knows: `sources` ends the answer with its sources.

    `events` "open-webui" adds that page's own events to a stream: each step, and each source with
    its passage.
    """

    model_config = ConfigDict(extra="forbid")

    sources: StrictBool | None = None
    events: Literal["open-webui"] | None = None


class ChatCompletionRequest(Storable):
    """Ask a question as a chat; what steers how a model samples is accepted and ignored."""

    model: str
    messages: list[ChatMessage] = Field(min_length=1)
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    function_call: str | dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None
    n: int | None = Field(None, ge=1, description="Ignored: there is one answer.")
    temperature: float | None = Field(None, description="Ignored.")
    top_p: float | None = Field(None, description="Ignored.")
    max_tokens: int | None = Field(None, description="Ignored.")
    max_completion_tokens: int | None = Field(None, description="Ignored.")
    stop: str | list[str] | None = Field(None, description="Ignored.")
    seed: int | None = Field(None, description="Ignored.")
    user: str | None = Field(None, description="Ignored: the key says who asks.")
    carrel: CarrelOptions = Field(default_factory=CarrelOptions)

    @property
    def with_usage(self) -> bool:
        """Tell whether a stream ends with what the run took."""
        return self.stream_options is not None and self.stream_options.include_usage


def model_ids(collections: Sequence[str]) -> list[str]:
    """Return the models of a caller: one for each collection, after the plain one."""
    return [MODEL, *(f"{MODEL}:{name}" for name in collections)]


def collection_of(model: str, collections: Sequence[str]) -> str:
    """Return the collection that a model asks; raises OpenAIError 404 when there is none.

    The plain model asks the collection "default", or the only one there is.
    """
    kind, _, name = model.partition(":")
    if model == MODEL:
        name = collections[0] if len(collections) == 1 else DEFAULT_COLLECTION
    if kind != MODEL or name not in collections:
        known = ", ".join(model_ids(collections))
        raise OpenAIError(
            404,
            f"The model must exist and you must have access to it. Yours are: {known}.",
            param="model",
            code="model_not_found",
        )
    return name


def question_of(request: ChatCompletionRequest, collections: Sequence[str]) -> Question:
    """Return the last message of the user as the question, what was said before as history."""
    refuse_unsupported(
        tools=bool(request.tools),
        functions=bool(request.functions),
        tool_choice=request.tool_choice not in (None, "none", "auto"),
        function_call=request.function_call not in (None, "none", "auto"),
        response_format=(request.response_format or {}).get("type", "text") != "text",
    )
    return last_question(request.messages, collection_of(request.model, collections), "messages")


def last_question(messages: Sequence[ChatMessage], collection: str, name: str) -> Question:
    """Return the last message of the user as the question; `name` is the field of messages."""
    utterances: list[Utterance] = []
    asked = -1
    for place, message in enumerate(messages):
        where = f"{name}.{place}.content"
        if message.role == "user":
            asked = len(utterances)
            utterances.append(Utterance("user", _text(message, where)))
        elif message.role == "assistant":
            utterances.append(Utterance("assistant", FOOTER.sub("", _text(message, where))))
    if asked < 0:
        raise OpenAIError(
            400, f"{name} must hold a message of the user, which is the question", name
        )
    return Question(
        text=utterances[asked].text, collection=collection, history=turns_of(utterances[:asked])
    )


def _text(message: ChatMessage, where: str) -> str:
    if not isinstance(message.content, list):
        return message.content or ""
    texts = []
    for index, part in enumerate(message.content):
        if message.role == "user" and (part.type != "text" or part.text is None):
            raise OpenAIError(
                400,
                f"Only parts of type 'text' with a 'text' can be answered, not {part.type!r:.40}",
                f"{where}.{index}",
            )
        texts.append(part.text or "")
    return "\n".join(texts)


UNSUPPORTED = {
    "tools": "the agent uses its own tools",
    "response_format": "answers are text",
    "text.format": "answers are text",
    "previous_response_id": "responses are not kept; send what was said before in input",
    "conversation": "responses are not kept; send what was said before in input",
    "background": "an answer comes at once, or as a stream",
    "prompt": "there are no stored prompts",
}


def refuse_unsupported(**given: bool) -> None:
    """Refuse the first field given that would promise what no answer has here."""
    for name in (name.replace("__", ".") for name, present in given.items() if present):
        why = UNSUPPORTED.get(name, UNSUPPORTED["tools"])
        raise OpenAIError(
            400, f"{name} is not supported: {why}. Leave it out.", name, "unsupported_parameter"
        )


CONVERSATION_HEADER = "X-Carrel-Conversation"
NEW = "new"
Begin = Callable[[AuthContext, str], str]
ConversationHeader = Annotated[
    str | None,
    Header(
        alias=CONVERSATION_HEADER,
        pattern=r"^[0-9A-Za-z_-]{1,64}$",
        description='Id of a conversation of the caller, or "new"; the response names it. Then the'
        " last message alone is read, and the answer may be a clarifying question.",
    ),
]


def continue_conversation(question: Question, model: str, conversation: str) -> Question:
    """Return the question as the next one of a conversation, which has its own history.

    The plain model asks the conversation's collection; one that names another is refused there.
    """
    collection = "" if model == MODEL else question.collection
    return replace(
        question, collection=collection, history=(), conversation=conversation, clarify=True
    )


def show_clarification(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result whose answer is its clarification, if it has one, in harmless Markdown."""
    asks: Mapping[str, Any] | None = result.get("clarification")
    if asks is None:
        return result
    options = [escape_markdown(option) for option in asks["options"]]
    text = clarification_text(
        Clarification(question=escape_markdown(asks["question"]), options=options)
    )
    return {**result, "answer": text}


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
