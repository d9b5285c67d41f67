"""The llama.cpp server that is installed here: where it is, which flags and devices it has."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec

from core.errors import OperatorError
from models.llama.health import Backend

PYTHON_SERVER = ("llama_cpp", "uvicorn", "fastapi", "sse_starlette", "starlette_context")
INSTALL = (
    "install llama.cpp (https://github.com/ggml-org/llama.cpp, `brew install llama.cpp`) and set"
    " CARREL_LLAMA_SERVER to its llama-server, or `pip install 'carrel[llama]'`"
)
ASK_SECONDS = 30  # loading the libraries of a GPU takes seconds
FREE = re.compile(r"\(\d+ MiB, (\d+) MiB free\)")
FLAG = re.compile(r"(?<![\w-])--?[a-z][a-z0-9-]*")


@dataclass(frozen=True)
class ServerBinary:
    """Hold a server's program and what `--help` says of it; no flags are known of Python's."""

    backend: Backend
    program: tuple[str, ...]
    flags: frozenset[str] = frozenset()
    help: str = ""

    def knows(self, flag: str) -> bool:
        """Tell whether the server has this flag."""
        return flag in self.flags


def find_server(named: str) -> ServerBinary:
    """Return the server that a setting names, else llama-server of PATH, else llama_cpp.server.

    Raises OperatorError when there is none, or when the one named does not run.
    """
    path = shutil.which(named or "llama-server")
    if path:
        text = ask_server(path, "--help")
        return ServerBinary("llama-server", (path,), frozenset(FLAG.findall(text)), text)
    if named:
        raise OperatorError("llama-server must be a program that runs", value=named, hint=INSTALL)
    if all(find_spec(module) for module in PYTHON_SERVER):
        return ServerBinary("llama_cpp.server", (sys.executable, "-m", "llama_cpp.server"))
    raise OperatorError("no llama.cpp server is installed", hint=INSTALL)


def ask_server(path: str, flag: str) -> str:
    """Return what llama-server prints for a flag that makes it print and end."""
    try:
        done = subprocess.run(
            [path, flag],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=ASK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = error.strerror if isinstance(error, OSError) else "it does not end"
        raise _not_running(path, flag, str(reason)) from None
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        last = text.strip().rpartition("\n")[2]
        raise _not_running(path, flag, last or f"exit code {done.returncode}")
    return text


def _not_running(path: str, flag: str, reason: str) -> OperatorError:
    return OperatorError(f"`{path} {flag}` does not work", value=reason, hint=INSTALL)


def free_gpu_bytes(server: ServerBinary) -> int:
    """Return the free memory of all GPUs that the server can use; 0 without one."""
    if not server.knows("--list-devices"):
        return 0
    shown = ask_server(server.program[0], "--list-devices")
    return sum(int(free) for free in FREE.findall(shown)) << 20
