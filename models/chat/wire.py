"""What is sent to a chat model beside its settings: messages and parameters."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from models.chat.server_dialects import response_format
from models.chat.slots import Lease
from models.chat.types import Capabilities, ChatRequest

KINDS: dict[str, type[BaseMessage]] = {
    "system": SystemMessage,
    "user": HumanMessage,
    "assistant": AIMessage,
}
TELLING = ("llama-server", "vllm")  # the probabilities of tokens; others may refuse to be asked
MOST_ALTERNATIVES = 8
TEMPLATE_TOKEN = re.compile(r"<(\|[A-Za-z0-9_]{1,40}\||(?:start|end)_of_turn)>")


def to_messages(request: ChatRequest) -> list[BaseMessage]:
    """Return the messages for LangChain."""
    return [KINDS[message.role](plain(message.content)) for message in request.messages]


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
    said = json.dumps([request.messages, request.schema], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:16]
