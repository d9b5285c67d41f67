"""What is settled before a server is started, memory too, so that a wrong wish fails at once."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

from core.errors import CallerError, ModelError, OperatorError
from core.settings import Settings
from models.llama.command import (
    HOST,
    ServerBinary,
    find_server,
    free_gpu_bytes,
    port_of,
    server_command,
)
from models.llama.gguf_file import GgufInfo, read_gguf
from models.llama.server_state import KEY, ServedModel, home_of
from models.table import SLOT_CONTEXT, ChatCard, chat_table

CACHE_VALUE_BYTES = 2  # the cache of keys and values is f16
MICRO_BATCH = 512  # tokens whose logits llama.cpp computes at once (its own default)
LOGIT_BYTES = 4  # float32
MIB = 1 << 20
MEMINFO = Path("/proc/meminfo")
CGROUPS = Path("/sys/fs/cgroup")


def cache_bytes(info: GgufInfo, context: int, slots: int) -> int:
    """Return the bytes of keys and values for `slots` contexts of `context` tokens."""
    return info.kv_width * CACHE_VALUE_BYTES * context * slots


def buffer_bytes(info: GgufInfo) -> int:
    """Return the bytes that llama.cpp computes in: mostly the logits of one micro batch."""
    return MICRO_BATCH * info.vocabulary * LOGIT_BYTES


def required_memory(info: GgufInfo, context: int, slots: int) -> int:
    """Return the bytes of weights, cache and buffers together."""
    return info.bytes + cache_bytes(info, context, slots) + buffer_bytes(info)


def memory_available() -> int | None:
    """Return the bytes that a new process may use, None when the system does not say.

    Within a control group with a limit it is what the group has left, if that is less.
    """
    found = [size for size in (_meminfo(), _free_group_memory()) if size is not None]
    return min(found) if found else _physical()


def check_memory(
    info: GgufInfo, context: int, slots: int, *, share: float = 1.0, margin: int = 0
) -> None:
    """Raise OperatorError when this share of what a model needs and a margin are not there.

    `share` is the part that is not on a GPU; `margin` in bytes stays free.
    """
    available = memory_available()
    needed = int(required_memory(info, context, slots) * share) + margin
    if available is None or needed <= available:
        return
    raise OperatorError(
        f"{info.name} needs {_gib(needed)} of memory ({_gib(info.bytes)} of weights and"
        f" {_gib(cache_bytes(info, context, slots))} for {slots} × {context} tokens),"
        f" and {_gib(available)} are free",
        hint="ask for less with --context or --slots, or take a smaller model",
    )


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.2f} GiB"


def _meminfo() -> int | None:
    try:
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return None


def _free_group_memory() -> int | None:
    """Return the memory left in this process's control group (version 2, then 1)."""
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            most = int((CGROUPS / limit).read_text(encoding="ascii"))
            now = int((CGROUPS / used).read_text(encoding="ascii"))
            cached = _cached_bytes((CGROUPS / used).with_name("memory.stat"))
        except (OSError, ValueError):  # no such file, or "max": no limit
            continue
        return most - now + cached
    return None


def _cached_bytes(statistics: Path) -> int:
    """Return the bytes of files in memory that the kernel gives up when asked."""
    for line in statistics.read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file"):
            return int(value)
    return 0


def _physical() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


OUTPUT_LAYER = 1  # llama.cpp counts the output as one more layer


def choose_layers(
    server: ServerBinary, info: GgufInfo, context: int, slots: int, *, asked: int, margin: int
) -> int:
    """Return the number of layers to put on GPUs: what was asked for, or as many as fit (-1).

    A layer weighs its share of the file and of the cache; `margin` in bytes stays free.
    """
    if asked >= 0 or server.backend == "llama_cpp.server":
        return choose_layers_in_process(info, asked=asked)
    everything = info.layers + OUTPUT_LAYER
    free = free_gpu_bytes(server) - buffer_bytes(info) - margin
    layer = (info.bytes + cache_bytes(info, context, slots)) / everything
    return max(0, min(everything, int(free / layer)))


def choose_layers_in_process(info: GgufInfo, *, asked: int) -> int:
    """Return the layers for llama-cpp-python: asked for, else (-1) all when it was built for a GPU.

    It does not tell how much memory a GPU has.
    """
    everything = info.layers + OUTPUT_LAYER
    if asked >= 0:
        return min(asked, everything)
    import llama_cpp

    return everything if llama_cpp.llama_supports_gpu_offload() else 0


def find_model(asked: str, folder: Path) -> tuple[Path, ChatCard | None]:
    """Return the file of a model of the table or of a path; of "", the best that was fetched.

    Raises CallerError for an unknown name and ModelError for a file that is not there.
    """
    cards = sorted(chat_table(), key=lambda card: card.rank)
    if not asked:
        for card in cards:
            if (file := card.path(folder)).is_file():
                return file, card
        raise ModelError(
            "no chat model has been fetched yet",
            value=str(folder),
            hint=f"run `carrel models pull {cards[0].name}`, or name a GGUF file",
        )
    for card in cards:
        if asked.casefold() == card.name.casefold():
            if not (file := card.path(folder)).is_file():
                raise ModelError(
                    f"the file of {card.name} is not there",
                    value=str(file),
                    hint=f"run `carrel models pull {card.name}`",
                )
            return file, card
    if not (asked.endswith(".gguf") or "/" in asked or Path(asked).exists()):
        raise CallerError(
            "the model to serve must be a GGUF file or one of "
            + ", ".join(card.name for card in cards),
            value=asked,
            hint="`carrel models list` shows them",
        )
    return Path(asked).expanduser().absolute(), None


# Chosen, not measured.
CONNECTIONS = 64  # that llama-server talks on at once; others wait
HEALTH_SECONDS = 4  # between two looks at the server's health
HEALTH_MISSES = 2  # looks in a row without an answer, then it is restarted
STOP_SECONDS = 3  # to end after SIGTERM; then comes SIGKILL

PLAN = "plan.json"
SLOTS = "slots"  # what the server keeps of prompts that never change


class ServePlan(ServedModel):
    """Say what the supervisor starts and how it watches it; times are in seconds."""

    home: Path
    port: int
    command: list[str]
    load_seconds: float
    health_seconds: float
    health_misses: int
    busy_seconds: float
    stop_seconds: float
    restarts: int
    log_bytes: int


def make_plan(settings: Settings, asked: str = "", port: int | None = None) -> ServePlan:
    """Choose model, port, context, slots and GPU layers, and check that they can work.

    `asked` is the name of a model, a path, or "" for the best model that was fetched.
    """
    url = settings.llm.url
    port = port or port_of(url)
    url = f"http://{HOST}:{port}{urlsplit(url).path.rstrip('/') or '/v1'}"
    check_port(port)
    file, card = find_model(asked, settings.llama.model_folder)
    info = read_gguf(file)
    server = find_server(settings.llama.server)
    context = slot_context(settings, info, card)
    slots = settings.llama.slots if server.backend == "llama-server" else 1  # Python's serves one
    margin = settings.llama.memory_margin * MIB
    layers = choose_layers(
        server, info, context, slots, asked=settings.llama.gpu_layers, margin=margin
    )
    share = 1 - layers / (info.layers + OUTPUT_LAYER)
    check_memory(info, context, slots, share=share, margin=margin)
    home = home_of(settings)
    name = card.name if card else file.stem
    command = server_command(
        server,
        model=file,
        name=name,
        port=port,
        context=context,
        slots=slots,
        gpu_layers=layers,
        threads=settings.llama.threads or os.cpu_count() or 1,
        connections=CONNECTIONS,
        key_file=home / KEY,
        slot_folder=home / SLOTS,
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
        load_seconds=settings.llama.load_seconds,
        health_seconds=HEALTH_SECONDS,
        health_misses=HEALTH_MISSES,
        busy_seconds=settings.llm.call_seconds,
        stop_seconds=STOP_SECONDS,
        restarts=settings.llama.restarts,
        log_bytes=settings.llama.log_bytes,
    )


def slot_context(settings: Settings, info: GgufInfo, card: ChatCard | None) -> int:
    """Return the tokens of one slot: as set, else as the table says.

    Raises CallerError for more tokens than the model was made for.
    """
    context = settings.llm.context or min(card.slot_context if card else SLOT_CONTEXT, info.context)
    if context > info.context:
        raise CallerError(
            f"{info.name} was made for {info.context} tokens of context at most",
            value=context,
            hint="give a smaller --context",
        )
    return context


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
