"""What a chat model is asked, what it replies, what it can do, and how it can fail."""

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
