"""What the supervisor writes down for others, and whether that process is still there."""

from __future__ import annotations

import http.client
import os
import secrets
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import SecretStr, ValidationError

from core.errors import OperatorError
from core.settings import Settings
from core.types import FrozenModel

START_FIELD, CPU_FIELDS = 19, slice(11, 13)  # of /proc/PID/stat, after the name in brackets
STEP_SECONDS = 0.02  # between two looks at a process that ends


def birth(pid: int) -> str | None:
    """Return when a process started, None when it has ended: pid and birth name one process."""
    fields = _statistics(pid)
    if fields is not None:
        return None if fields[0] in ("Z", "X") else fields[START_FIELD]
    return None if Path("/proc/self/stat").exists() else _ps(pid, "lstart")


def cpu_seconds(pid: int) -> float | None:
    """Return the CPU time that a process has used, None when that is not known."""
    fields = _statistics(pid)
    if fields is not None:
        return sum(map(int, fields[CPU_FIELDS])) / os.sysconf("SC_CLK_TCK")
    shown = _ps(pid, "time")  # [hours:]minutes:seconds
    if shown is None:
        return None
    total = 0.0
    for part in shown.replace("-", ":").split(":"):
        total = total * 60 + float(part)
    return total


def is_running(pid: int, born: str) -> bool:
    """Tell whether the process of this pid is still the one that was born then."""
    return birth(pid) == born


def end_process(pid: int, born: str, seconds: float) -> bool:
    """End a process by SIGTERM, by SIGKILL when it is still there after some seconds.

    Return whether it had to be killed. A process that another one has taken the pid of is left
    alone.
    """
    if not is_running(pid, born):
        return False
    _signal(pid, signal.SIGTERM)
    if _wait_until_gone(pid, born, seconds):
        return False
    _signal(pid, signal.SIGKILL)
    _wait_until_gone(pid, born, seconds)
    return True


def _wait_until_gone(pid: int, born: str, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while is_running(pid, born):
        if time.monotonic() > end:
            return False
        time.sleep(STEP_SECONDS)
    return True


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _statistics(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _ps(pid: int, column: str) -> str | None:
    """Ask ps, where there is no /proc."""
    command = ["ps", "-o", f"{column}=", "-p", str(pid)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None


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


class ServedModel(FrozenModel):
    """Describe what a server runs and where; `context` is in tokens of one slot."""

    url: str
    model: str
    file: str
    backend: Backend
    context: int
    slots: int
    gpu_layers: int


class ServerState(ServedModel):
    """Describe the supervised server.

    Births tell a process from a later one with the same pid. `started_at` is in
    UTC; `error` says why it has failed.
    """

    state: Phase
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
    """Return the state that was last written; None when there is none or it cannot be read."""
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
    """Replace the written state."""
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
