"""A real llama.cpp server for tests: found, started, and waited for until it is healthy.

`CARREL_LLAMA__SERVER` names llama-server; else PATH has it; else `llama_cpp.server` stands in.
The variable is read on import, since no test sees the user's `CARREL_` variables.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

LLAMA_SERVER = os.environ.get("CARREL_LLAMA__SERVER", "") or shutil.which("llama-server") or ""
MISSING = "no llama.cpp server: set CARREL_LLAMA__SERVER or install llama-cpp-python[server]"
LOAD_SECONDS = 60
SLOTS, CONTEXT = 2, 8192  # CONTEXT is that of one slot


@dataclass(frozen=True)
class RunningServer:
    """Hold a healthy server; `url` ends in /v1."""

    url: str
    key: str
    process: subprocess.Popen[bytes]
    is_llama_server: bool


def find_server_command(
    model: Path, port: int, key: str, slots: int = SLOTS, context: int = CONTEXT
) -> list[str] | None:
    """Return the command that serves a model, or None when no server is installed."""
    where = ["--host", "127.0.0.1", "--port", str(port)]
    if LLAMA_SERVER:
        size = ["-c", str(slots * context), "-np", str(slots), "--cache-ram", "0", "-t", "1"]
        return [LLAMA_SERVER, "-m", str(model), *where, "--api-key", key, *size]
    if find_spec("llama_cpp") and find_spec("uvicorn") and find_spec("starlette_context"):
        size = ["--n_ctx", str(context), "--n_threads", "1"]
        size += ["--interrupt_requests", "false"]
        server = [sys.executable, "-m", "llama_cpp.server", "--model", str(model)]
        return [*server, *where, "--api_key", key, *size]
    return None


def free_port() -> int:
    """Return a port of 127.0.0.1 that nothing listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def answers(url: str, key: str) -> bool:
    """Tell whether a server lists its models."""
    request = Request(f"{url}/models", headers={"Authorization": f"Bearer {key}"})
    try:
        with urlopen(request, timeout=2) as reply:
            return bool(reply.status == 200)
    except HTTPError as error:
        error.close()  # 503 while the model loads
        return False
    except (URLError, OSError):
        return False


@contextlib.contextmanager
def served(model: Path, log: Path, slots: int = SLOTS) -> Iterator[RunningServer | None]:
    """Serve a model on a free port; None when no server is installed."""
    port, key = free_port(), secrets.token_hex(16)
    command = find_server_command(model, port, key, slots)
    if command is None:
        yield None
        return
    if LLAMA_SERVER:
        folder = log.with_suffix(".slots")
        folder.mkdir(exist_ok=True)
        command += ["--slot-save-path", str(folder)]
    url = f"http://127.0.0.1:{port}/v1"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + LOAD_SECONDS
        while not answers(url, key):
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server did not start: {log.read_text()[-2000:]}")
            time.sleep(0.05)
        yield RunningServer(url, key, process, bool(LLAMA_SERVER))
    finally:
        process.kill()
        process.wait()
