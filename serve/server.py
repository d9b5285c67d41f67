"""The server process: one uvicorn, and a graceful end."""

from __future__ import annotations

import asyncio
import math
import re
import signal
import socket
import threading
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from core.settings import Settings
from serve.runs.runner import CANCEL_SECONDS

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


HEADER_BYTES = 65_536  # of a request's head, h11's own default is 16 KiB; chosen, not measured


class GracefulServer(uvicorn.Server):
    """Say when it is ready, and have what runs end with an answer before connections are cut."""

    def __init__(
        self,
        config: uvicorn.Config,
        ready: Callable[[], None],
        end: Callable[[], Awaitable[None]],
        patience: float,
    ) -> None:
        """Call `end` when `patience` seconds have passed since the stop."""
        super().__init__(config)
        self._ready = ready
        self._end = end
        self._patience = patience

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, then call `ready`."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let requests go on for a while, end what still runs, then close."""
        ending = asyncio.create_task(self._end_later())
        try:
            await super().shutdown(sockets)
        finally:
            ending.cancel()

    async def _end_later(self) -> None:
        await asyncio.sleep(self._patience)
        await self._end()


def serve(
    app: ASGIApp,
    settings: Settings,
    bound: socket.socket,
    ready: Callable[[], None],
    end: Callable[[], Awaitable[None]],
    reload: Callable[[], None],
) -> int:
    """Serve until SIGINT or SIGTERM, call `reload` on SIGHUP; return the exit code.

    `end` cancels what still runs when it may go on no longer.
    """
    server = make_server(app, settings, ready, end)

    def done(number: int, frame: FrameType | None) -> None:
        """Ignore the signal that uvicorn raises again when it has ended."""

    def again(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=reload, name="reload").start()

    before = {number: signal.signal(number, done) for number in (signal.SIGINT, signal.SIGTERM)}
    if hasattr(signal, "SIGHUP"):  # not on Windows
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, again)
    try:
        server.run(sockets=[bound])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        bound.close()
    return 0 if server.started else 1


def make_server(
    app: ASGIApp, settings: Settings, ready: Callable[[], None], end: Callable[[], Awaitable[None]]
) -> GracefulServer:
    """Return a server with the limits of the settings."""
    header_seconds = {"header_seconds": settings.serve.header_seconds}
    options: dict[str, Any] = {
        "http": type("TimedProtocol", (TimedProtocol,), header_seconds),
        "ws": "none",
        "lifespan": "on",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,  # what a client says of its own address is not believed
        "h11_max_incomplete_event_size": HEADER_BYTES,
        "timeout_keep_alive": settings.serve.idle_seconds,
        "timeout_graceful_shutdown": math.ceil(settings.serve.stop_seconds + CANCEL_SECONDS),
        "limit_concurrency": settings.serve.connections,
    }
    return GracefulServer(uvicorn.Config(app, **options), ready, end, settings.serve.stop_seconds)
