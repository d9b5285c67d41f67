"""What is sent to a chat model, how many tokens it has, and how its reply is taken."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable
from math import exp
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, BaseMessageChunk, convert_to_messages

from core.budget import current_ledger
from core.language.scan import estimate_tokens
from core.question import replace_surrogates
from core.settings import Settings
from models.chat.running import RunningCall, open_call
from models.chat.turns import Breaker, Lease
from models.chat.types import (
    Capabilities,
    ChatReply,
    ChatRequest,
    Finish,
    ModelCancelled,
    response_format,
)

TELLING = ("llama-server", "vllm")  # the probabilities of tokens; others may refuse to be asked
MOST_ALTERNATIVES = 8  # chosen, not measured
TEMPLATE_TOKEN = re.compile(r"<(\|[A-Za-z0-9_]{1,40}\||(?:start|end)_of_turn)>")


def to_messages(request: ChatRequest) -> list[BaseMessage]:
    """Return the messages for LangChain."""
    return convert_to_messages([(one.role, plain(one.content)) for one in request.messages])


def plain(text: str) -> str:
    """Return a text whose template tokens cannot end its message: servers would obey them."""
    return TEMPLATE_TOKEN.sub(r"< \1 >", text)


def parameters(
    can: Capabilities, request: ChatRequest, limit: int, lease: Lease, owner: str
) -> dict[str, Any]:
    """Return the parameters that a server is known to understand."""
    sent: dict[str, Any] = {"max_tokens": limit}
    if can.switches:
        sent["chat_template_kwargs"] = {"enable_thinking": request.thinking}
    if request.schema is not None and not request.thinking:
        sent |= response_format(can.structured, request.schema)
    if request.alternatives and can.kind in TELLING and not request.thinking:
        sent |= {"logprobs": True, "top_logprobs": MOST_ALTERNATIVES}
    if can.kind == "llama-server":
        sent["cache_prompt"] = lease.use_cache
    if can.kind == "vllm" and owner:
        sent["cache_salt"] = hashlib.sha256(owner.encode()).hexdigest()
    if lease.slot is not None:
        sent["id_slot"] = lease.slot
    return sent


def prompt_hash(request: ChatRequest) -> str:
    """Return 16 hexadecimal digits that identify messages and schema."""
    content = json.dumps([request.messages, request.schema], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:16]


TEMPLATE_TOKENS = 8  # of the chat template around one message, at most
ESTIMATE_MARGIN = 1.5  # so that an estimate is seldom too low; chosen, not measured
REMEMBERED = 100  # prompts; only those of the last few calls are asked for again


class PromptTokens:
    """Count prompts, each once."""

    def __init__(
        self, llm: BaseChatModel, capabilities: Capabilities, settings: Settings, breaker: Breaker
    ) -> None:
        self._llm = llm
        self._counts = capabilities.tokenizes
        self._settings = settings
        self._breaker = breaker
        self._known: dict[str, int] = {}

    def of(self, request: ChatRequest) -> int:
        """Return the tokens of a request's messages; never too few where they are counted."""
        key = prompt_hash(request)
        known = self._known.get(key)  # one look: another thread may forget it in between
        if known is None:
            parts = [f"{message.role}\n{plain(message.content)}\n" for message in request.messages]
            parts.append("assistant\n")  # what a template ends with
            tokens = self._count("".join(parts)) + TEMPLATE_TOKENS * len(parts)
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[key] = tokens
            return tokens
        return known

    def _count(self, text: str) -> int:
        if self._counts and not self._breaker.is_open:
            call = RunningCall.within(current_ledger(), self._settings)
            call.next_by = time.monotonic() + self._settings.llm.connect_seconds
            try:
                with open_call(call):
                    return int(self._llm.get_num_tokens(text))
            except Exception as error:  # whatever it is, the call itself will meet it too
                if isinstance(call.error or error, ModelCancelled):
                    raise
        return int(estimate_tokens(text) * ESTIMATE_MARGIN)


SHORTEST_RUN = 120  # characters: a ruled line or a few empty cells of a table are no loop
LONGEST_PIECE = 2000  # characters


def find_repeated_piece(text: str, copies: int) -> int:
    """Return the length of the piece that a text ends in `copies` times over, else 0."""
    if len(text) < SHORTEST_RUN:
        return 0
    last = text[-1]
    for size in range(1, min(len(text) // copies, LONGEST_PIECE) + 1):
        if text[-1 - size] != last:
            continue
        length = max(copies * size, SHORTEST_RUN)
        # a text that equals itself moved by `size` is made of copies of its last `size` characters
        if length <= len(text) and text[-length : len(text) - size] == text[size - length :]:
            return size
    return 0


MARKER = re.compile(r"<think>|</think>|<\|[A-Za-z_]{1,30}\|>")
MAYBE_MARKER = re.compile(r"<(?:/?[think]{0,6}|\|[A-Za-z_]{0,30}\|?)\Z")
CHECK_EVERY = 16  # characters between two looks for repetition


class TextFilter:
    """Separate a reply's text from thinking and from template tokens that leaked into it.

    Thinking counts as such before any text only. With `expected`, text is held back until it is
    sure that it is not thinking whose opening tag was part of the prompt.
    """

    def __init__(self, expected: bool = False) -> None:
        self.text = ""
        self.reasoning = ""
        self._waiting = ""
        self._shown = 0
        self._thinking = False
        self._undecided = expected

    def feed(self, piece: str) -> str:
        """Take a piece and return the text that has become certain."""
        self._waiting += piece
        while found := MARKER.search(self._waiting):
            self._take(self._waiting[: found.start()])
            self._waiting = self._waiting[found.end() :]
            self._mark(found.group())
        partial = MAYBE_MARKER.search(self._waiting)
        end = partial.start() if partial else len(self._waiting)
        self._take(self._waiting[:end])
        self._waiting = self._waiting[end:]
        return self._certain()

    def think(self, piece: str) -> None:
        """Take thinking that the server has already separated from text."""
        self.reasoning += piece
        self._undecided = False

    def end(self) -> str:
        """Return the text that was still held back."""
        rest, self._waiting = self._waiting, ""
        self._take(rest)
        self._undecided = False
        return self._certain()

    def _certain(self) -> str:
        if self._undecided:
            return ""
        text, self._shown = self.text[self._shown :], len(self.text)
        return text

    def _mark(self, marker: str) -> None:
        if marker == "<think>" and not self.text.strip():
            self._thinking, self._undecided = True, False
        elif marker == "</think>" and self._undecided:
            self.reasoning, self.text = self.reasoning + self.text, ""
            self._undecided = False
        elif marker == "</think>":
            self._thinking = False

    def _take(self, piece: str) -> None:
        if self._thinking:
            self.reasoning += piece
        elif self.text:
            self.text += piece
        else:
            self.text = piece.lstrip()


class IncomingReply:
    """Gather a streamed reply; `on_text` hears its text as soon as it is certain.

    `limit` is the max_tokens that was sent; `cut` says that nothing more is wanted; `first_at` is
    the `time.monotonic()` of the first token.
    """

    def __init__(
        self,
        request: ChatRequest,
        repeats: int,
        thinks: bool,
        on_text: Callable[[str], None] | None = None,
    ) -> None:
        self.request = request
        self.repeats = repeats
        self.on_text = on_text
        self.limit = request.max_tokens
        self.finish: Finish | None = None
        self.cut = False
        self.first_at = 0.0
        self.tokens = 0
        self.usage: dict[str, Any] = {}
        self.alternatives: dict[str, float] = {}
        self._filter = TextFilter(expected=thinks)
        self._unchecked = 0

    @property
    def raw(self) -> str:
        """Return what has been written, thinking first."""
        return self._filter.reasoning + self._filter.text

    def take(self, chunk: BaseMessageChunk) -> bool:
        """Take one chunk; return whether it has a token."""
        text = replace_surrogates(chunk.text)
        thought = replace_surrogates(str(chunk.additional_kwargs.get("reasoning_content") or ""))
        self.usage = dict(getattr(chunk, "usage_metadata", None) or self.usage)
        if chunk.response_metadata.get("finish_reason"):
            self.finish = (
                "length" if chunk.response_metadata["finish_reason"] == "length" else "stop"
            )
        if not text and not thought:
            return False
        if text.strip() and not self._filter.text:
            self.alternatives = _alternatives(chunk.response_metadata.get("logprobs"))
        self.tokens += 1
        self.first_at = self.first_at or time.monotonic()
        if thought:
            self._filter.think(thought)
        self._hear(self._filter.feed(text))
        self._watch(len(text) + len(thought))
        if self.tokens > self.limit:  # the server does not keep to max_tokens
            self.finish, self.cut = "length", True
        return True

    def end(self) -> ChatReply:
        """Return the complete reply; its text may be empty."""
        self._hear(self._filter.end())
        text, reasoning = self._filter.text.strip(), self._filter.reasoning.strip()
        if self.request.schema is not None and not text:
            text = _json_within(reasoning, self.request.schema)
        return ChatReply(text, self.finish or "stop", reasoning, self.alternatives)

    def _hear(self, text: str) -> None:
        if text and self.on_text:
            self.on_text(text)

    def _watch(self, added: int) -> None:
        self._unchecked += added
        if self._unchecked < CHECK_EVERY:
            return
        self._unchecked = 0
        for written in (self._filter.text, self._filter.reasoning):
            if find_repeated_piece(written, self.repeats):
                self.finish, self.cut = "repeated", True


def _alternatives(logprobs: Any) -> dict[str, float]:  # noqa: ANN401  # what a server says
    """Return the likeliest tokens with their probabilities, nothing for what cannot be read."""
    found: dict[str, float] = {}
    try:
        for one in logprobs["content"][0]["top_logprobs"]:
            token = str(one["token"]).strip()
            found[token] = found.get(token, 0.0) + exp(min(0.0, float(one["logprob"])))
    except (KeyError, IndexError, TypeError, ValueError):
        return {}
    return found


def _json_within(reasoning: str, schema: dict[str, Any]) -> str:
    """Return the JSON object that a server has put into the thinking (llama.cpp #22537)."""
    start, end = reasoning.find("{"), reasoning.rfind("}")
    try:
        found = json.loads(reasoning[start : end + 1], strict=False)
    except (ValueError, RecursionError):
        return ""
    wanted = set(schema.get("required", ()))
    return reasoning[start : end + 1] if isinstance(found, dict) and wanted <= set(found) else ""
