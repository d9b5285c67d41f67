"""How the servers that count tokens are asked to."""

from __future__ import annotations

from typing import Any

from models.chat.types import Capabilities


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
