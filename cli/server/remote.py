"""A command that a running server runs for this process, which shows what it says."""

from __future__ import annotations

import base64
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from types import FrameType
from typing import Any

from rich.console import Console

from cli.terminal.output import fail, input_piece, stderr, stdout, typed_line
from core.settings_sources import PREFIX, VARIABLE
from serve.operator.frames import LOOPBACK, Channel, Frame, FrameError, enter
from stores.lock import OwnedError, Owner

SERVER_GONE = 4
INTERRUPTED = 130
MOST_BYTES = 1_000_000  # of a frame; the server sends pieces of 16,384 characters
SECONDS = 1.0  # for a server of the same machine to say who it is; chosen, not measured
TERMINAL = ("TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


class ServerOwns(Exception):
    """Say that a server owns the directory and could run the command."""

    def __init__(self, refusal: OwnedError, owner: Owner) -> None:
        self.refusal = refusal
        self.owner = owner


def run_there(found: ServerOwns, arguments: list[str]) -> int:
    """Have the server run a command, and return its exit code; raises OwnedError."""
    try:
        channel = entered(found.owner)
    except (OSError, FrameError) as error:
        raise _refusal(found.refusal, error) from None
    with closing(channel):
        return _Talk(channel, found.owner, arguments).run()


def asked(refusal: OwnedError, owner: Owner) -> OwnedError:
    """Return a refusal that also says when the server that owns the directory does not answer."""
    try:
        entered(owner).close()
    except (OSError, FrameError) as error:
        return _refusal(refusal, error)
    return refusal


def _refusal(found: OwnedError, error: Exception) -> OwnedError:
    late = SECONDS if isinstance(error, TimeoutError) else 0
    return OwnedError(found.folder, found.owner, late_s=late) if late else found


def entered(owner: Owner) -> Channel:
    """Return a talk with the server that owns a directory; raises OSError, FrameError."""
    connection = socket.create_connection((LOOPBACK, owner.port), timeout=SECONDS)
    channel = Channel(connection, most_bytes=MOST_BYTES, seconds=SECONDS)
    try:
        enter(channel, owner.secret)
    except BaseException:
        channel.close()
        raise
    return channel


class _Talk:
    """Send one command, and say what the server says until it ends."""

    def __init__(self, channel: Channel, owner: Owner, arguments: list[str]) -> None:
        self._channel = channel
        self._owner = owner
        self._arguments = arguments
        self._reading = False
        self._interrupts = 0

    def run(self) -> int:
        try:
            self._send(
                arguments=self._arguments,
                folder=os.getcwd(),
                variables=_variables(),
                out=_terminal(stdout()),
                err=_terminal(stderr()),
                asks=sys.stdin.isatty(),
            )
            if "--json" not in self._arguments:
                stderr().print(f"[dim](through the server, process {self._owner.pid})[/dim]")
            with self._interruptible():
                return self._followed()
        except KeyboardInterrupt:
            return INTERRUPTED

    def _send(self, **frame: Any) -> None:  # noqa: ANN401 - anything JSON can hold
        with suppress(OSError):  # what it said last can still be read
            self._channel.send(**frame)

    def _received(self) -> Frame | None:
        try:
            return self._channel.receive()
        except (OSError, FrameError):  # never mixed up with a broken pipe of the output
            return None

    def _followed(self) -> int:
        while (frame := self._received()) is not None:
            if "exit" in frame:
                return int(frame["exit"])
            if "refused" in frame:
                fail(str(frame["refused"]))
                return SERVER_GONE
            self._show(frame)
        return self._gone()

    def _show(self, frame: Frame) -> None:
        if "out" in frame:
            sys.stdout.write(frame["out"])
            sys.stdout.flush()
        elif "err" in frame:
            sys.stderr.write(frame["err"])
            sys.stderr.flush()
        elif "read" in frame:
            self._send(**self._read(lambda: typed_line(str(frame["read"]))))
        elif "piece" in frame:
            self._send(**self._read(lambda: base64.b64encode(input_piece()).decode()))

    def _read(self, read: Callable[[], str]) -> dict[str, Any]:
        self._reading = True
        try:
            return {"line": read()}
        except KeyboardInterrupt:
            return {"interrupt": True}
        finally:
            self._reading = False

    def _gone(self) -> int:
        fail(
            f"the server (process {self._owner.pid}) ended before the command did; what was"
            " finished is kept. Run it again."
        )
        return SERVER_GONE

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Let Ctrl-C end the command there; a second one does not wait for that."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def interrupt(number: int, frame: FrameType | None) -> None:
            self._interrupts += 1
            if self._reading or self._interrupts > 1:
                raise KeyboardInterrupt
            self._send(interrupt=True)

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def _terminal(console: Console) -> dict[str, Any]:
    return {
        "tty": console.file.isatty(),
        "encoding": getattr(console.file, "encoding", None) or "utf-8",
        "width": max(1, console.width),
        "height": max(1, console.height),
    }


def _variables() -> dict[str, str]:
    """Return the variables of this process, but no secrets, with whole paths."""
    from core.settings import PATHS, SECRETS, setting_of

    found = {}
    for name, value in os.environ.items():
        if name in TERMINAL or (name.startswith(PREFIX) and setting_of(name) not in SECRETS):
            whole = value and (name == VARIABLE or setting_of(name) in PATHS)
            found[name] = os.path.abspath(os.path.expanduser(value)) if whole else value
    return found
