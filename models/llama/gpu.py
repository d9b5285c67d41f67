"""How many layers of a model a GPU takes."""

from __future__ import annotations

from models.llama.binary import ServerBinary, free_gpu_bytes
from models.llama.gguf_file import GgufInfo
from models.llama.memory import buffer_bytes, cache_bytes

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
