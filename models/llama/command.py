"""The command that serves one model on this machine only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from core.errors import CallerError, OperatorError
from models.llama.binary import ServerBinary
from models.llama.server_state import LOOPBACK

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
        raise CallerError(f"llm_url is not a URL ({error})", value=url, hint=hint) from None
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
    wanted = _wanted(server, name, context, gpu_layers, connections)
    flags += [text for flag, *value in wanted if server.knows(flag) for text in (flag, *value)]
    return [*server.program, *flags]


def _wanted(
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
