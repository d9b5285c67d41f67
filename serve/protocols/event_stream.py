"""Server-sent events of other wire formats: signs of life, and an end when the client leaves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from pydantic_core import to_json
from sse_starlette import EventSourceResponse
from starlette.types import Message

from core.settings import Settings
from serve.runs.following import Following

PING_SECONDS = 15  # between two signs of life in a stream
SEND_SECONDS = 30  # that a client may take to accept a piece of a stream


def json_text(value: Any) -> str:  # noqa: ANN401  # whatever a protocol sends
    """Return compact JSON; what JSON has no number for (infinity) becomes null."""
    return to_json(value, inf_nan_mode="null", serialize_unknown=True).decode()


def event_stream(
    events: AsyncIterator[dict[str, str]], run: Following, settings: Settings
) -> EventSourceResponse:
    """Send {"data", "event"?} dicts of a run as they come; the run ends when the client leaves."""

    async def left(message: Message) -> None:
        run.close()  # the generator may not have begun, and then closes nothing

    return EventSourceResponse(
        events,
        ping=PING_SECONDS,
        send_timeout=SEND_SECONDS,
        shutdown_grace_period=settings.serve.stop_seconds,
        client_close_handler_callable=left,
    )
