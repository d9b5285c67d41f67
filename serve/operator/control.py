"""The door beside HTTP through which the operator's own commands reach a running server."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from core.settings import Settings
from serve.operator.command import Command, Request
from serve.operator.frames import LOOPBACK, Channel, FrameError, admit
from serve.runs.following import SEND_SECONDS
from serve.runs.runner import CANCEL_SECONDS
from serve.telemetry.logs import log

COMMAND_BYTES = 4000000  # longest message of the command line to its server

Run = Callable[[Command], int]
STRANGERS = 16  # connections that have proved nothing yet


class Control:
    """Take commands on a loopback port from who can read the owner's note."""

    def __init__(self, settings: Settings, run: Run) -> None:
        """Have commands run by `run`, each on a thread of its own; open no port yet."""
        self._settings = settings
        self._run = run
        self._server: _Listener | None = None
        self._secret = ""
        self._changed = threading.Condition()
        self._commands: set[Command] = set()
        self._strangers = 0
        self._closing = False

    def bind(self) -> int:
        """Take a port of loopback and return it; 0 when there is none, or it is not wanted."""
        if not self._settings.serve.commands:
            return 0
        try:
            self._server = _Listener((LOOPBACK, 0), self._meet)
        except OSError as error:
            log.warning("commands cannot reach this server: %s", error)
            return 0
        return int(self._server.server_address[1])

    def open(self, secret: str) -> None:
        """Let in who knows the secret."""
        self._secret = secret
        if self._server is not None and secret:
            threading.Thread(target=self._server.serve_forever, name="control", daemon=True).start()

    def close(self) -> None:
        """Accept no command, end what runs, and wait for it as long as for running answers."""
        server, self._server = self._server, None
        if server is not None:
            if self._secret:
                server.shutdown()
            server.server_close()
        settings = self._settings
        patience = settings.serve.stop_seconds + CANCEL_SECONDS
        with self._changed:
            self._closing = True
            for command in self._commands:
                command.stop()
            self._changed.wait_for(lambda: not self._commands, patience)

    def _meet(self, connection: socket.socket) -> None:
        settings = self._settings
        most, seconds = COMMAND_BYTES, settings.serve.header_seconds
        channel = Channel(connection, most_bytes=most, seconds=seconds)
        try:
            request = self._receive_request(channel)
            channel.allow(SEND_SECONDS)
            if request is not None:
                self._serve(channel, request)
        except FrameError as error:
            log.warning("a command was turned away: %s", error)
        except OSError:
            return  # it is gone
        finally:
            channel.close()

    def _receive_request(self, channel: Channel) -> Request | None:
        """Return a client's request, once it has proved itself; None when there is no room."""
        with self._changed:
            if self._strangers >= STRANGERS:
                return None
            self._strangers += 1
        try:
            admit(channel, self._secret)
            frame = channel.receive(patient=False)
            return None if frame is None else Request.model_validate(frame)
        except ValidationError as error:
            raise FrameError(f"a request cannot be read: {error.errors()[0]['msg']}") from None
        finally:
            with self._changed:
                self._strangers -= 1

    def _serve(self, channel: Channel, request: Request) -> None:
        command = Command(channel, request)
        if refusal := self._refusal(command):
            channel.send(refused=refusal)
            return
        threading.Thread(target=command.listen, name="listen", daemon=True).start()
        try:
            channel.send(exit=self._run(command))
        finally:
            with self._changed:
                self._commands.discard(command)
                self._changed.notify_all()

    def _refusal(self, command: Command) -> str:
        with self._changed:
            if self._closing:
                return "the server is stopping. Run it again when it has ended."
            if len(self._commands) >= self._settings.serve.commands:
                most = self._settings.serve.commands
                return f"a server runs at most {most} commands at once. Run it again later."
            self._commands.add(command)
        return ""


class _Listener(socketserver.ThreadingTCPServer):
    """Accept connections, each on a thread that does not hold up the end of the server."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = False

    def __init__(self, address: tuple[str, int], meet: Callable[[socket.socket], None]) -> None:
        self._meet = meet
        super().__init__(address, socketserver.BaseRequestHandler)

    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        self._meet(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        log.exception("unexpected")
