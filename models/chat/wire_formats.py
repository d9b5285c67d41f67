"""How a request says that the reply must keep to a schema."""

from __future__ import annotations

from typing import Any

from models.chat.types import Structured


def response_format(form: Structured, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the parameter that makes a server keep to a schema, in the form it obeys."""
    if form == "json_schema":
        named = {"name": "reply", "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    if form == "json_object":
        return {"response_format": {"type": "json_object", "schema": schema}}
    return {}
