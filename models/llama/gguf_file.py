"""The header of a GGUF file: which model it is, and whether the file is complete."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from core.errors import ModelError

# Weights in a block and bytes of a block, by tensor type (ggml.h).
BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
    9: (32, 40), 10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210),
    15: (256, 292), 16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18),
    21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8),
    28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17),
    40: (64, 36), 41: (128, 18),
}  # fmt: skip

# Names of `general.file_type` (llama.h).
FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K",
    11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S",
    17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS",
    23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M",
    30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE",
    39: "NVFP4", 40: "Q1_0",
}  # fmt: skip


STRING, ARRAY = 8, 9  # types of values (ggml/docs/gguf.md), as the letters of `struct`
SCALARS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
KEPT_ITEMS = 1024  # of longer arrays, which are vocabularies, the length alone is kept
MOST_DIMENSIONS = 4  # GGML_MAX_DIMS
ALIGNMENT = 32  # where the file names none


class GgufHeader:
    """Hold the values of a header and the number of weights.

    Strings in arrays are skipped: such an array is given as a range of its length. Raises
    ModelError when the file ends before its last tensor, or is damaged.
    """

    def __init__(self, path: Path, view: mmap.mmap) -> None:
        self.path = path
        self.view = view
        self.size = len(view)
        self.at = 8  # after magic and version
        self.values: dict[str, Any] = {}
        tensors, count = self._scalar("Q"), self._scalar("Q")
        for _ in range(count):
            key = self._string()
            self.values[key] = self._value(self._scalar("I"))
        self.parameters = self._check_tensors(tensors, self.number("general.alignment", ALIGNMENT))

    def number(self, key: str, otherwise: int = 0) -> int:
        """Return a value if it is a whole number above or equal to 0."""
        value = self.values.get(key)
        return value if isinstance(value, int) and value >= 0 else otherwise

    def _check_tensors(self, count: int, alignment: int) -> int:
        """Return the number of weights; the file must hold the last byte of every tensor."""
        parameters, end = 0, 0
        for _ in range(count):
            self._string()
            dimensions = self._scalar("I")
            if dimensions > MOST_DIMENSIONS:
                raise self._broken(f"a tensor of {dimensions} dimensions")
            weights = prod(self._scalar("Q") for _ in range(dimensions))
            block, size = BLOCKS.get(self._scalar("I"), (1, 0))  # of new types: the start alone
            end = max(end, self._scalar("Q") + weights // block * size)
            parameters += weights
        alignment = max(alignment, 1)
        start = -(-self.at // alignment) * alignment
        if end and start + end > self.size:
            raise truncation_error(self.path, self.size)
        return parameters

    def _value(self, kind: int) -> Any:  # noqa: ANN401 - a file may hold any of the types
        if kind == STRING:
            return self._string()
        if kind == ARRAY:
            return self._array(self._scalar("I"), self._scalar("Q"))
        return self._scalar(self._letter(kind))

    def _array(self, kind: int, count: int) -> Sequence[Any]:
        if kind == STRING:
            for _ in range(count):
                self._move(self._scalar("Q"))
            return range(count)
        letter = self._letter(kind)
        if count > KEPT_ITEMS:
            self._move(count * struct.calcsize(letter))
            return range(count)
        return [self._scalar(letter) for _ in range(count)]

    def _letter(self, kind: int) -> str:
        if kind not in SCALARS:
            raise self._broken(f"a value of type {kind}")
        return SCALARS[kind]

    def _scalar(self, letter: str) -> Any:  # noqa: ANN401 - as the letter says
        start = self._move(struct.calcsize(letter))
        return struct.unpack_from("<" + letter, self.view, start)[0]

    def _string(self) -> str:
        start = self._move(self._scalar("Q"))
        return self.view[start : self.at].decode("utf-8", "replace")

    def _move(self, size: int) -> int:
        """Step over some bytes and return where they start."""
        start = self.at
        self.at += size
        if self.at > self.size:
            raise truncation_error(self.path, self.size)
        return start

    def _broken(self, what: str) -> ModelError:
        return ModelError(
            f"the GGUF file is damaged: {what}",
            value=str(self.path),
            hint="compare it with its published SHA-256: `carrel models verify`",
        )


def truncation_error(path: Path, size: int) -> ModelError:
    """Return the error for a file of which only `size` bytes are there."""
    return ModelError(
        f"the GGUF file is cut off after {size:,} bytes",
        value=str(path),
        hint="fetch it again: `carrel models pull NAME` goes on where a download has ended",
    )


MAGIC = b"GGUF"
VERSIONS = (2, 3)  # little-endian ones that llama.cpp reads


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
                return _describe(GgufHeader(path, view))
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
        raise truncation_error(path, len(start))
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


def _describe(header: GgufHeader) -> GgufInfo:
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
