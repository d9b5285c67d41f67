"""What a chat model is asked, replies and can do, how servers differ, and how a call can fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import Field

from core.errors import ModelError
from core.types import FrozenModel

Role = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", "repeated"]
Structured = Literal["json_schema", "json_object", "none"]
Thinking = Literal["none", "switch", "always"]
Kind = Literal[
    "llama-server", "llama_cpp.server", "vllm", "openai-compatible", "in-process", "provider"
]


class Message(NamedTuple):
    """Hold one message of a prompt."""

    role: Role
    content: str


@dataclass(frozen=True)
class ChatRequest:
    """Ask for one reply of at most `max_tokens` tokens.

    With `schema` (a JSON schema) the reply must be JSON that satisfies it: it is constrained where
    the server really enforces schemas, and checked by the caller in any case. `thinking` lets the
    model think first, which leaves the reply unconstrained. With `alternatives` the reply tells
    what else its first token might have been, where the server can. The first `static` messages
    are the same for all callers, so that a server may keep them; nothing else is ever kept.
    """

    messages: tuple[Message, ...]
    max_tokens: int
    schema: dict[str, Any] | None = None
    thinking: bool = False
    alternatives: bool = False
    static: int = 0


@dataclass(frozen=True)
class ChatReply:
    """Hold one reply; `reasoning` is what the model thought before it, never part of an answer.

    `alternatives` are the likeliest first tokens of the text, without blanks, with their
    probabilities 0..1; empty where the server does not tell.
    """

    text: str
    finish: Finish = "stop"
    reasoning: str = ""
    alternatives: Mapping[str, float] = field(default_factory=dict)


class Capabilities(FrozenModel):
    """Hold what a server was found to do when it was probed.

    `structured` is the form of constrained output that it really enforces; `context` is the tokens
    of one slot; `pins_slots`: a request may name its slot; `tokenizes`: it counts tokens for us;
    `switches`: it accepts `chat_template_kwargs`; `digest` tells the model from another one behind
    the same address, as far as the server or the file tells.
    """

    kind: Kind
    model: str
    served: list[str] = Field(default_factory=list)
    structured: Structured = "none"
    context: int = 4096
    slots: int = 1
    thinking: Thinking = "none"
    switches: bool = False
    pins_slots: bool = False
    tokenizes: bool = False
    digest: str = ""


class ChatModel(Protocol):
    """Reply to messages within the deadlines and tokens of the current ledger."""

    name: str
    capabilities: Capabilities

    def complete(
        self, request: ChatRequest, *, verb: str, on_text: Callable[[str], None] | None = None
    ) -> ChatReply:
        """Return the reply and record the call in the current ledger.

        `on_text` hears each piece of the reply's text as it arrives. Raises one of the errors
        below; every one of them is recorded too.
        """

    def room(self, request: ChatRequest) -> int:
        """Return the tokens of context left after prompt and max_tokens; negative: it overflows."""

    def close(self) -> None:
        """Let go of connections or weights."""


class ModelUnavailable(ModelError):
    """Say that the server cannot be reached, refuses, or is left alone after many failures."""

    retryable = True


class ModelTimeout(ModelError):
    """Say which deadline a call has missed: connect, first token, gap, total, or the run's own."""

    retryable = True


class ModelOverflow(ModelError):
    """Say that a prompt does not fit the context or the run's tokens; it was not sent."""


class ModelReplyError(ModelError):
    """Say that a reply is broken: no text, not HTTP or JSON as agreed, too long."""


class ModelCancelled(ModelError):
    """Say that the caller gave up while the model was writing."""


SERVE = "start one with `carrel llm serve`, or set CARREL_LLM_URL"
LOOK = "see `carrel llm status` and the server's log"
OVERFLOWS = ("exceed_context_size", "context_length_exceeded", "maximum context length")
BROKEN_TEXT = "does not match the expected"  # llama-server: the model's text, not the server


class NoConnection(ModelUnavailable):
    """Say that no connection to the server came about, so that trying again does no harm."""


class ModelRefused(ModelUnavailable):
    """Say that a server answers, but not this caller: key, address or model are wrong."""

    retryable = False


class ServerBusy(ModelUnavailable):
    """Say that too many calls wait for the server already."""


class RunTimeout(ModelTimeout):
    """Say that the run's own time ended, which is no fault of the server."""


def no_server(url: str, why: str) -> NoConnection:
    """Return the error for an address where nothing answers."""
    return NoConnection(f"no model server answers at {url}", value=why.rstrip("."), hint=SERVE)


def status_error(status: int, message: str, url: str) -> ModelError:
    """Return the error for an HTTP status that is no success."""
    what = f"HTTP {status}: {message}" if message.strip() else f"HTTP {status}"
    if status in (401, 403):
        rule = f"the model server at {url} refuses the key"
        return ModelRefused(rule, value=what, hint="set CARREL_LLM__KEY to the server's key")
    if status in (404, 405) or status < 400:
        rule = f"there is no chat model at {url}"
        hint = "CARREL_LLM_URL usually ends in /v1; CARREL_LLM__MODEL must be a model it serves"
        return ModelRefused(rule, value=what, hint=hint)
    if BROKEN_TEXT in message or (status < 500 and status not in (408, 425, 429)):
        return reply_error(what)
    rule = f"the model server at {url} is not ready or has failed"
    return ModelUnavailable(rule, value=what, hint=LOOK)


def reply_error(message: str) -> ModelError:
    """Return the error for a server's message about a request or about its own reply."""
    if any(mark in message for mark in OVERFLOWS):
        hint = "set CARREL_LLM__CONTEXT to the tokens of one slot of the server"
        return ModelOverflow(
            "the prompt does not fit the model's context", value=message, hint=hint
        )
    return ModelReplyError("the model server rejects the request or its own reply", value=message)


def response_format(form: Structured, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the parameter that makes a server keep to a schema, in the form it obeys."""
    if form == "json_schema":
        named = {"name": "reply", "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    if form == "json_object":
        return {"response_format": {"type": "json_object", "schema": schema}}
    return {}


def tokenize_request(capabilities: Capabilities, text: str) -> tuple[str, dict[str, Any]]:
    """Return path (below the server's root) and body of the request that counts tokens."""
    if capabilities.kind == "vllm":
        return "/tokenize", {"model": capabilities.model, "prompt": text}
    if capabilities.kind == "llama_cpp.server":
        return "/extras/tokenize/count", {"input": text}
    return "/tokenize", {"content": text}


def token_count(reply: Any) -> int:  # noqa: ANN401
    """Read the count from any of their replies; raise ValueError when there is none."""
    if isinstance(reply, dict) and isinstance(reply.get("count"), int):
        return int(reply["count"])
    if isinstance(reply, dict) and isinstance(reply.get("tokens"), list):
        return len(reply["tokens"])
    raise ValueError("the server did not count tokens")
