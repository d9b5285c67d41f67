"""Events of a run as a stream of server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast

from fastapi import Request
from sse_starlette import EventSourceResponse, ServerSentEvent

from core.errors import CarrelError
from core.settings import Settings
from serve.access.guard import unexpected_body
from serve.depends import check_standing
from serve.errors import error_body
from serve.protocols.event_stream import PING_SECONDS, SEND_SECONDS
from serve.runs.disconnect import unless_gone
from serve.telemetry.logs import log
from serve.types import RunEvent


async def event_stream(
    request: Request, events: AsyncIterator[RunEvent], settings: Settings
) -> EventSourceResponse:
    """Return a response that streams the events; what fails before the first is raised instead."""
    generator = cast(AsyncGenerator[RunEvent], events)
    first = await unless_gone(request, _first(generator))
    return EventSourceResponse(
        _lines(first, generator, request),
        ping=PING_SECONDS,
        send_timeout=SEND_SECONDS,
        shutdown_grace_period=settings.serve.stop_seconds,
        headers={"Cache-Control": "no-store"},
        sep="\n",
    )


async def _first(events: AsyncGenerator[RunEvent]) -> RunEvent:
    return await anext(events)


async def _lines(
    first: RunEvent, events: AsyncGenerator[RunEvent], request: Request
) -> AsyncIterator[ServerSentEvent]:
    request_id = request.scope["carrel.id"]
    async with aclosing(events):
        try:
            check_standing(request)  # the run may have waited in line for long
            yield _line(first.kind, first.data)
            async for event in events:
                check_standing(request)
                yield _line(event.kind, event.data)
        except CarrelError as error:
            yield _line("error", error_body(error, request_id))
        except Exception:  # the status is sent: this is all that can still be said
            log.exception("unexpected", extra={"id": request_id})
            yield _line("error", unexpected_body(request_id))


def _line(kind: str, data: object) -> ServerSentEvent:
    return ServerSentEvent(json.dumps(data, ensure_ascii=False), event=kind, sep="\n")
