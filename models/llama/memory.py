"""How much memory a model needs, and how much there is."""

from __future__ import annotations

import os
from pathlib import Path

from core.errors import OperatorError
from models.llama.command import ServerBinary, free_gpu_bytes
from models.llama.gguf_file import GgufInfo

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
