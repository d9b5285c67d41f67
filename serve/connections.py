"""Connections that do not send, or send heads that readers differ about: they are closed."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# A header line that goes on in the next one (RFC 9112 section 5.2): h11 joins the two.
HEAD = re.compile(rb"(.*?)\n\r?\n", re.DOTALL)
FOLDED = re.compile(rb"\n[ \t]")


class _StrictConnection(h11.Connection):
    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event; raises RemoteProtocolError for a folded head."""
        if self.their_state is h11.IDLE:
            head = HEAD.match(self.trailing_data[0])
            if head is not None and FOLDED.search(head[1]):
                raise h11.RemoteProtocolError("a header has one line")
        return super().next_event()


class TimedProtocol(H11Protocol):
    """Close a connection whose request's head is not there after `header_seconds`.

    Uvicorn's own limit is for the time between two requests only.
    """

    header_seconds: float

    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 - uvicorn's own
        super().__init__(*given, **named)
        size = self.config.h11_max_incomplete_event_size
        assert size is not None  # it is one of `make_server`'s options
        self.conn = _StrictConnection(h11.SERVER, size)
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
