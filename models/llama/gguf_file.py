"""The header of a GGUF file: what model it holds, and whether the file is whole."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from pathlib import Path

from core.errors import ModelError
from models.llama.ggml_types import FILE_TYPES
from models.llama.gguf_header import GgufHeader, truncated

MAGIC = b"GGUF"
VERSIONS = (2, 3)


@dataclass(frozen=True)
class GgufInfo:
    """Describe the model of one file.

    `context` is the longest one it was trained for; `kv_width` is the number of values that the
    cache holds for one token in all layers; `quantisation` is "" when the file does not say it.
    """

    path: Path
    bytes: int
    architecture: str
    name: str
    quantisation: str
    parameters: int
    context: int
    layers: int
    kv_width: int
    vocabulary: int
    has_chat_template: bool


def read_gguf(path: Path) -> GgufInfo:
    """Read the header of a GGUF file.

    Raises ModelError when it is no such file, when its end is missing, or of a foreign version.
    """
    try:
        with path.open("rb") as file:
            start = file.read(8)
            _check_start(path, start)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
                return _described(GgufHeader(path, view))
    except OSError as error:
        reason = error.strerror or str(error)
        if path.is_dir():
            reason = "a folder"
        raise ModelError(
            f"a model must be a GGUF file that can be read ({reason})",
            value=str(path),
            hint="name a .gguf file, or fetch one: `carrel models pull NAME`",
        ) from None


def _check_start(path: Path, start: bytes) -> None:
    again = "fetch it again: `carrel models pull NAME`"
    if not start.startswith(MAGIC):
        raise ModelError(
            f"a GGUF file starts with 'GGUF', this one with {start[:4]!r}",
            value=str(path),
            hint="name a .gguf file, or " + again,
        )
    if len(start) < 8:
        raise truncated(path, len(start))
    version = int.from_bytes(start[4:8], "little")
    if version in VERSIONS:
        return
    if int.from_bytes(start[4:8], "big") in VERSIONS:
        raise ModelError("the GGUF file is big-endian, this reads little-endian", value=str(path))
    raise ModelError(
        f"the GGUF file has version {version}, this reads {VERSIONS[0]} and {VERSIONS[-1]}",
        value=str(path),
        hint="take a file that a current llama.cpp has written",
    )


def _described(header: GgufHeader) -> GgufInfo:
    values = header.values
    architecture = str(values.get("general.architecture", ""))

    def number(key: str, otherwise: int = 0) -> int:
        return header.number(f"{architecture}.{key}", otherwise)

    layers = number("block_count")
    heads = max(number("attention.head_count"), 1)
    size = number("embedding_length") // heads
    width = number("attention.key_length", size) + number("attention.value_length", size)
    tokens = values.get("tokenizer.ggml.tokens")
    kv_heads = values.get(f"{architecture}.attention.head_count_kv")
    all_heads = (
        int(sum(kv_heads))
        if isinstance(kv_heads, list)
        else layers * number("attention.head_count_kv", heads)
    )
    if not (architecture and header.parameters and layers and number("context_length")):
        raise ModelError(
            "the GGUF file holds no language model that llama.cpp can serve",
            value=str(header.path),
            hint="name a chat model, not a tokenizer, adapter or projector",
        )
    return GgufInfo(
        path=header.path,
        bytes=header.size,
        architecture=architecture,
        name=str(values.get("general.name") or header.path.stem),
        quantisation=FILE_TYPES.get(header.number("general.file_type", -1), ""),
        parameters=header.parameters,
        context=number("context_length"),
        layers=layers,
        kv_width=all_heads * width,
        vocabulary=len(tokens) if isinstance(tokens, list | range) else 0,
        has_chat_template="tokenizer.chat_template" in values,
    )
