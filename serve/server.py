"""The server process: one uvicorn, and a graceful end."""

from __future__ import annotations

import asyncio
import math
import signal
import socket
import threading
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from core.settings import Settings
from serve.connections import timed_protocol

HEADER_BYTES = 65_536


class Server(uvicorn.Server):
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
    app: ASGIApp,
    settings: Settings,
    ready: Callable[[], None],
    end: Callable[[], Awaitable[None]],
) -> Server:
    """Return a server with the limits of the settings."""
    options: dict[str, Any] = {
        "http": timed_protocol(settings.serve_header_seconds),
        "ws": "none",
        "lifespan": "on",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,  # what a client says of its own address is not believed
        "h11_max_incomplete_event_size": HEADER_BYTES,
        "timeout_keep_alive": settings.serve_idle_seconds,
        "timeout_graceful_shutdown": math.ceil(
            settings.serve_stop_seconds + settings.serve_cancel_seconds
        ),
        "limit_concurrency": settings.serve_connections,
    }
    return Server(uvicorn.Config(app, **options), ready, end, settings.serve_stop_seconds)
