"""How servers differ in what they are sent: schemas of replies, and texts whose tokens they count.

Nothing heavy is imported here: servers are looked for before it is known whether there is one.
"""

from __future__ import annotations

from typing import Any

from models.chat.types import Capabilities, Structured


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
