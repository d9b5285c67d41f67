"""Connections that do not send: closed when no whole request has come in time."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


class TimedProtocol(H11Protocol):
    """Close a connection whose request's head is not there after `header_seconds`.

    Uvicorn's own limit is for the time between two requests only.
    """

    header_seconds: float

    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 - uvicorn's own
        super().__init__(*given, **named)
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Stop the clock when a request begins, start it when one is incomplete."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop()
        elif self._late is None:
            self._late = self.loop.call_later(self.header_seconds, self.transport.close)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def timed_protocol(seconds: float) -> type[TimedProtocol]:
    """Return the protocol with this limit."""
    return type("TimedProtocol", (TimedProtocol,), {"header_seconds": seconds})
