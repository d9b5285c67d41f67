"""Server-sent events with a sign of life, and an end as soon as the client leaves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from pydantic_core import to_json
from sse_starlette import EventSourceResponse


def json_text(value: Any) -> str:  # noqa: ANN401  # whatever a protocol sends
    """Return compact JSON; what JSON has no number for (infinity) becomes null."""
    return to_json(value, inf_nan_mode="null", serialize_unknown=True).decode()


def event_stream(events: AsyncIterator[dict[str, str]]) -> EventSourceResponse:
    """Send {"data", "event"?} dicts as they come; closing the stream closes the generator."""
    return EventSourceResponse(events)
