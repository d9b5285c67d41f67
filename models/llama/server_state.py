"""What the supervisor writes down for others: server.json, and the key in a file of its own."""

from __future__ import annotations

import http.client
import os
import secrets
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import SecretStr, ValidationError

from core.errors import OperatorError
from core.settings import Settings
from core.types import FrozenModel
from models.llama.processes import is_running

Health = Literal["ok", "loading", "silent"]
Backend = Literal["llama-server", "llama_cpp.server"]


def look(port: int, backend: Backend, seconds: float) -> Health:
    """Ask a server on 127.0.0.1 how it is, and wait some seconds for the answer.

    llama-server says 503 while it loads; llama_cpp.server listens once it has loaded, and has no
    page for its health that a running answer does not block, so any reply of it will do.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request("GET", "/health")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return "silent"
    finally:
        connection.close()
    if status == 200 or (status == 404 and backend == "llama_cpp.server"):
        return "ok"
    return "loading" if status == 503 else "silent"


STATE, KEY, LOG, LOCK = "server.json", "key", "server.log", "server.lock"
SUPERVISOR_LOG = "supervisor.log"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
Phase = Literal["starting", "healthy", "restarting", "failed"]


class ServerState(FrozenModel):
    """Describe the supervised server.

    Births (see processes.py) tell a process from a later one with the same pid. `started_at` is in
    UTC; `error` says why it has failed.
    """

    state: Phase
    url: str
    model: str
    file: str
    backend: Backend
    context: int
    slots: int
    gpu_layers: int
    log: str
    started_at: str
    supervisor_pid: int
    supervisor_birth: str
    pid: int | None = None
    birth: str = ""
    restarts: int = 0
    error: str = ""

    @property
    def supervised(self) -> bool:
        """Tell whether the supervisor that wrote this is still there."""
        return is_running(self.supervisor_pid, self.supervisor_birth)


def home_of(settings: Settings) -> Path:
    """Return the folder of state, key and logs."""
    return settings.llama.home.expanduser().absolute()


def read_state(home: Path) -> ServerState | None:
    """Return what was last written; None when there is nothing or it cannot be read."""
    try:
        return ServerState.model_validate_json((home / STATE).read_bytes())
    except (OSError, ValidationError):
        return None


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, completely or not at all."""
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        new.replace(path)
    except OSError as error:
        rule = f"the server's state cannot be written ({error.strerror})"
        hint = "set CARREL_LLAMA__HOME to a folder that can be written"
        raise OperatorError(rule, value=str(path), hint=hint) from None


def write_state(home: Path, state: ServerState) -> None:
    """Replace what is written down."""
    write_private(home / STATE, state.model_dump_json(indent=1))


def ensure_key(settings: Settings) -> str:
    """Return the key of our own server, the same in every start, and keep it in its file."""
    path = home_of(settings) / KEY
    asked = settings.llm.key.get_secret_value() if settings.llm.key else ""
    kept = _read_key(path)
    key = asked or kept or secrets.token_urlsafe(32)
    if key != kept or path.stat().st_mode & 0o077:
        write_private(path, key + "\n")
    return key


def key_for(settings: Settings) -> SecretStr | None:
    """Return the key to talk to `settings.llm.url`: the one set, else that of our own server."""
    if settings.llm.key is not None:
        return settings.llm.key
    state = read_state(home_of(settings))
    if state is None or not state.supervised or not same_server(state.url, settings.llm.url):
        return None
    key = _read_key(home_of(settings) / KEY)
    return SecretStr(key) if key else None


def same_server(first: str, second: str) -> bool:
    """Tell whether two URLs name the same port of this machine."""
    one, other = urlsplit(first), urlsplit(second)
    return one.port == other.port and one.hostname in LOOPBACK and other.hostname in LOOPBACK


def _read_key(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
