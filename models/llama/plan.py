"""Everything that is settled before a server is started, so that a wrong wish fails at once."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

from core.errors import CallerError, OperatorError
from core.settings import Settings
from core.types import Value
from models.llama.binary import find_server
from models.llama.command import HOST, port_of, server_command
from models.llama.gguf_file import GgufInfo, read_gguf
from models.llama.gpu import OUTPUT_LAYER, choose_layers
from models.llama.health import Backend
from models.llama.memory import MIB, check_memory
from models.llama.profiles import ModelProfile, find_model, read_profiles
from models.llama.server_state import KEY, home_of

PLAN = "plan.json"


class ServePlan(Value):
    """Say what the supervisor starts and how it watches it; times are in seconds."""

    home: Path
    model: str
    file: str
    url: str
    port: int
    backend: Backend
    command: list[str]
    context: int
    slots: int
    gpu_layers: int
    load_seconds: float
    health_seconds: float
    health_misses: int
    busy_seconds: float
    stop_seconds: float
    restarts: int
    log_bytes: int


def make_plan(settings: Settings, asked: str = "", port: int | None = None) -> ServePlan:
    """Choose model, port, context, slots and GPU layers, and check that they can work.

    `asked` is the name of a profile, a path, or "" for the first profile that was fetched.
    """
    url = settings.llm_url
    port = port or port_of(url)
    url = f"http://{HOST}:{port}{urlsplit(url).path.rstrip('/') or '/v1'}"
    check_port(port)
    file, profile = find_model(asked, settings.model_folder)
    info = read_gguf(file)
    server = find_server(settings.llama_server)
    context, slots = context_and_slots(settings, info, profile)
    slots = slots if server.backend == "llama-server" else 1  # Python's serves one at a time
    margin = settings.llm_memory_margin * MIB
    layers = choose_layers(
        server, info, context, slots, asked=settings.llm_gpu_layers, margin=margin
    )
    share = 1 - layers / (info.layers + OUTPUT_LAYER)
    check_memory(info, context, slots, share=share, margin=margin)
    home = home_of(settings)
    name = profile.name if profile else file.stem
    command = server_command(
        server,
        model=file,
        name=name,
        port=port,
        context=context,
        slots=slots,
        gpu_layers=layers,
        threads=settings.llm_threads or os.cpu_count() or 1,
        connections=settings.llm_connections,
        key_file=home / KEY,
    )
    return ServePlan(
        home=home,
        model=name,
        file=str(file),
        url=url,
        port=port,
        backend=server.backend,
        command=command,
        context=context,
        slots=slots,
        gpu_layers=layers,
        load_seconds=settings.llm_load_seconds,
        health_seconds=settings.llm_health_seconds,
        health_misses=settings.llm_health_misses,
        busy_seconds=settings.llm_call_seconds,
        stop_seconds=settings.llm_stop_seconds,
        restarts=settings.llm_restarts,
        log_bytes=settings.llm_log_bytes,
    )


def context_and_slots(
    settings: Settings, info: GgufInfo, profile: ModelProfile | None
) -> tuple[int, int]:
    """Return the tokens of one slot and the number of slots: as set, else as the profile says.

    Raises CallerError for more tokens than the model was made for.
    """
    context = settings.llm_context or min(
        profile.context if profile else read_profiles().other.context, info.context
    )
    if context > info.context:
        raise CallerError(
            f"{info.name} was made for {info.context} tokens of context at most",
            value=context,
            hint="give a smaller --context",
        )
    if profile and "llm_slots" not in settings.model_fields_set:
        return context, profile.slots
    return context, settings.llm_slots


def check_port(port: int) -> None:
    """Raise OperatorError when a server cannot listen on this port of 127.0.0.1."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
            trial.listen(1)
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            reason = "another program listens there" if taken else error.strerror
            raise OperatorError(
                f"port {port} of {HOST} cannot be used ({reason})",
                hint="choose another one: --port N, or CARREL_LLM_URL=http://localhost:N/v1",
            ) from None
        except OverflowError:
            raise CallerError("a port is a number from 1 to 65535", value=port) from None
