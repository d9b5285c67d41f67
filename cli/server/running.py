"""The command that a server runs for a client on this thread, if it does, and its streams."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from app.session import Session
    from core.auth import AuthContext
    from serve.jobs import Jobs
    from serve.operator.control import Command, StreamName
    from serve.runs.observers import Claims


@dataclass
class Host:
    """Hold the parts of a server that its operator's commands use, and the paths one was given."""

    session: Session
    claims: Claims
    jobs: Jobs
    command: Command
    paths: dict[Path, str] = field(default_factory=dict)


STDIN = Path("-")  # where standard input may be given in place of a path
_host: ContextVar[Host | None] = ContextVar("host", default=None)


def host() -> Host | None:
    """Return the server that this thread's command runs in, None in a process of its own."""
    return _host.get()


def running() -> Command | None:
    """Return the command that a server runs on this thread."""
    found = _host.get()
    return None if found is None else found.command


@contextmanager
def hosted(where: Host) -> Iterator[None]:
    """Let the block be a command of a server's client."""
    token = _host.set(where)
    try:
        yield
    finally:
        _host.reset(token)


@contextmanager
def claimed(auth: AuthContext, conversation: str) -> Iterator[None]:
    """Hold a conversation against a server's other callers; raises InUseError."""
    here = _host.get()
    with nullcontext() if here is None else here.claims.hold(auth, conversation):
        yield


class ClientStream(io.TextIOBase):
    """Write to a stream of the client; other threads than the command's may write as well."""

    def __init__(self, command: Command, name: StreamName) -> None:
        self._command = command
        self._name = name
        self._terminal = getattr(command.request, name)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Return the encoding that the client's terminal has."""
        return cast(str, self._terminal.encoding)

    def isatty(self) -> bool:
        """Tell whether a person reads it."""
        return cast(bool, self._terminal.tty)

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str, /) -> int:
        """Send text; raises KeyboardInterrupt when the client interrupted the command."""
        self._command.write(self._name, text)
        return len(text)


def stream_of(command: Command, name: StreamName) -> TextIO:
    """Return a stream of the client whose command this is."""
    return cast(TextIO, ClientStream(command, name))


def placed(path: Path) -> Path:
    """Return where a path leads that was given from the folder a command was typed in."""
    here = _host.get()
    if here is None or path.is_absolute() or path == STDIN:
        return path
    if path.parts[:1] == ("~",):
        return path.expanduser()
    whole = Path(here.command.request.folder) / path
    here.paths[whole] = str(path)
    return whole


def shown(path: Path) -> str:
    """Return a path as it was given."""
    here = _host.get()
    return str(path) if here is None else here.paths.get(path, str(path))
