"""The command that serves one model on this machine only."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from core.distribution import install_command
from core.errors import CallerError, OperatorError
from models.llama.server_state import LOOPBACK, Backend

PYTHON_SERVER = ("llama_cpp", "uvicorn", "fastapi", "sse_starlette", "starlette_context")
INSTALL = (
    "install llama.cpp (https://github.com/ggml-org/llama.cpp, `brew install llama.cpp`) and set"
    f" CARREL_LLAMA__SERVER to its llama-server, or `{install_command('llama')}`"
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


HOST = "127.0.0.1"
# Variables that would change what the flags say; llama-server reads those of the first line.
FOREIGN = ("LLAMA_ARG_", "LLAMA_API_", "CARREL_")
PYTHON_SETTINGS = ("CONFIG_FILE", "HOST", "PORT", "API_KEY", "ROOT_PATH", "SSL_KEYFILE")


def port_of(url: str) -> int:
    """Return the port of a URL of this machine.

    Raises CallerError for any other machine: the server is never shown to a network.
    """
    hint = "set CARREL_LLM_URL to http://localhost:PORT/v1, or give --port"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise CallerError(f"llm.url is not a URL ({error})", value=url, hint=hint) from None
    if parts.hostname not in LOOPBACK or parts.scheme != "http":
        raise CallerError("a server is run on this machine alone, by http", value=url, hint=hint)
    if not port:
        raise CallerError("the URL of the server to run needs a port", value=url, hint=hint)
    return port


def server_command(
    server: ServerBinary,
    *,
    model: Path,
    name: str,
    port: int,
    context: int,
    slots: int,
    gpu_layers: int,
    threads: int,
    connections: int,
    key_file: Path,
    slot_folder: Path,
) -> list[str]:
    """Return the command; it never holds the key."""
    if server.backend == "llama_cpp.server":
        values = {
            "model": model,
            "model_alias": name,
            "host": HOST,
            "port": port,
            "n_ctx": context,
            "n_gpu_layers": gpu_layers,
            "interrupt_requests": "false",  # else each request ends the one before
            "verbose": "false",
            "n_threads": threads,
        }
        flags = [text for key, value in values.items() for text in (f"--{key}", str(value))]
        return [*server.program, *flags]
    if not server.knows("--api-key-file"):
        raise OperatorError(
            "llama-server must know --api-key-file",
            value=server.program[0],
            hint="install a newer llama.cpp",
        )
    flags = ["-m", str(model), "--host", HOST, "--port", str(port)]
    flags += ["-c", str(context * slots), "-np", str(slots), "-t", str(threads)]
    flags += ["--api-key-file", str(key_file)]
    if server.knows("--slot-save-path"):  # what never changes of prompts is kept over restarts
        flags += ["--slot-save-path", str(slot_folder)]
    wanted = _optional_flags(server, name, context, gpu_layers, connections)
    flags += [text for flag, *value in wanted if server.knows(flag) for text in (flag, *value)]
    return [*server.program, *flags]


def _optional_flags(
    server: ServerBinary, name: str, context: int, gpu_layers: int, connections: int
) -> Iterator[tuple[str, ...]]:
    """Yield flags that an older llama-server may not know."""
    yield "--alias", name
    yield "-ngl", str(gpu_layers)
    yield "-n", str(context)
    yield "--cache-ram", "0"  # no copies of prompts beside the slots' own caches
    yield ("--no-slots",)  # it would show prompts of others
    yield ("--no-ui",) if server.knows("--no-ui") else ("--no-webui",)
    yield ("--jinja",)
    yield ("--offline",)
    yield "--poll", "0"  # threads that spin take the cores that Carrel computes on
    yield "--threads-http", str(connections)  # a connection holds one until it is closed
    if "--flash-attn [" in server.help:  # a bare switch in older versions
        yield "--flash-attn", "auto"


def server_environment(server_is_python: bool, key: str, port: int) -> dict[str, str]:
    """Return this process's variables without those that would change what the command says."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
    if not server_is_python:
        return kept
    kept = {k: v for k, v in kept.items() if k.upper() not in PYTHON_SETTINGS}
    return kept | {"API_KEY": key, "HOST": HOST, "PORT": str(port)}
