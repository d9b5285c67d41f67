"""The door beside HTTP through which the operator's own commands reach a running server."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections import deque
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from core.settings import Settings
from serve.operator.frames import LOOPBACK, Channel, FrameError, admit
from serve.runs.following import SEND_SECONDS
from serve.runs.runner import CANCEL_SECONDS
from serve.telemetry.logs import log

StreamName = Literal["out", "err"]
CHARS = 16_384  # of a piece of text, so that no frame is long; chosen, not measured


def _text(value: Any) -> str:  # noqa: ANN401 - what a frame holds
    """Take a text, also one with halves of characters, as names of files may have."""
    if not isinstance(value, str):
        raise ValueError("must be a text")
    return value


Size = Annotated[int, Field(ge=1, le=100_000)]
Text = Annotated[Any, AfterValidator(_text)]


class Terminal(BaseModel):
    """Describe a stream of the client: whether it is a terminal, its encoding and size."""

    model_config = ConfigDict(extra="forbid")

    tty: bool = False
    encoding: str = "utf-8"
    width: Size = 80
    height: Size = 25


class Request(BaseModel):
    """Hold the command that a client asks for, as it was typed, and where."""

    model_config = ConfigDict(extra="forbid")

    arguments: list[Text]
    folder: Text
    variables: dict[Text, Text] = {}
    out: Terminal = Terminal()
    err: Terminal = Terminal()
    asks: bool = False  # whether its input is a terminal


class Command:
    """Carry a command's output to its client and the client's words to it.

    `cancelled` is set when the client interrupts it or is gone, or the server stops.
    """

    def __init__(self, channel: Channel, request: Request) -> None:
        """Belong to the thread that makes it, which runs the command."""
        self.request = request
        self.cancelled = threading.Event()
        self.stopping = False
        self._channel = channel
        self._thread = threading.get_ident()
        self._changed = threading.Condition()
        self._lines: deque[str] = deque()  # that the client typed
        self._ended = False
        self._interrupted = False

    def write(self, stream: StreamName, text: str) -> None:
        """Show text to the client; unread text is dropped."""
        for start in range(0, len(text), CHARS):
            try:
                self._channel.send(**{stream: text[start : start + CHARS]})
            except OSError:
                self.leave()
                break
        self.check()

    def check(self) -> None:
        """Raise KeyboardInterrupt, once, in the command's own thread after an interruption."""
        if threading.get_ident() != self._thread:
            return
        with self._changed:
            interrupted, self._interrupted = self._interrupted, False
        if interrupted:
            raise KeyboardInterrupt

    def again(self) -> threading.Event:
        """Return `cancelled`, unset when the client that interrupted something goes on."""
        if not self.stopping and not self._ended:
            self.cancelled.clear()
        return self.cancelled

    def read_line(self, prompt: str = "", *, piece: bool = False) -> str:
        """Return the client's next line, "" at its end; an interruption raises.

        With `piece` it is the next bytes, in base64.
        """
        try:
            self._channel.send(**({"piece": True} if piece else {"read": prompt}))
        except OSError:
            self.leave()
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._ended or self._interrupted)
            if not self._interrupted:
                return self._lines.popleft() if self._lines else ""
        self.check()
        return ""

    def listen(self) -> None:
        """Take the client's frames until it leaves; for a thread of its own."""
        try:
            while (frame := self._channel.receive()) is not None:
                if isinstance(line := frame.get("line"), str):
                    with self._changed:
                        self._lines.append(line)
                        self._changed.notify_all()
                elif frame.get("interrupt"):
                    self.interrupt()
        except Exception:  # whatever it was, the talk is over
            return
        finally:
            self.leave()

    def interrupt(self) -> None:
        """Interrupt the running command, as Ctrl-C would."""
        with self._changed:
            self._interrupted = True
            self.cancelled.set()
            self._changed.notify_all()

    def leave(self) -> None:
        """End the command, whose client is gone."""
        with self._changed:
            if self._ended:
                return
            self._ended = True
        self.interrupt()

    def stop(self) -> None:
        """End the command, since the server ends."""
        self.stopping = True
        self.interrupt()


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
