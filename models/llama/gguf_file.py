"""The header of a GGUF file: what model it holds, and whether the file is whole.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3).
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from core.errors import ModelError
from models.llama.ggml_types import BLOCKS, FILE_TYPES

MAGIC = b"GGUF"
VERSIONS = (2, 3)
STRING, ARRAY = 8, 9
SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
KEPT_ITEMS = 1024  # longer arrays are vocabularies and are skipped
MOST_DIMENSIONS = 4


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
                return _Header(path, view).info()
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
        raise _truncated(path, len(start))
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


def _truncated(path: Path, size: int) -> ModelError:
    return ModelError(
        f"the GGUF file is cut off after {size:,} bytes",
        value=str(path),
        hint="fetch it again: `carrel models pull NAME` goes on where a download has ended",
    )


def _whole(value: object, otherwise: int) -> int:
    """Return a value if it is a whole number above or equal to 0."""
    return value if isinstance(value, int) and value >= 0 else otherwise


class _Header:
    """Walk through the header of a mapped file."""

    def __init__(self, path: Path, view: mmap.mmap) -> None:
        self.path = path
        self.view = view
        self.size = len(view)
        self.at = 8

    def info(self) -> GgufInfo:
        tensors, count = self._scalar("Q"), self._scalar("Q")
        values: dict[str, Any] = {}
        for _ in range(count):
            key = self._string()
            values[key] = self._value(self._scalar("I"))
        parameters = self._check_tensors(tensors, _whole(values.get("general.alignment"), 32))
        return self._described(values, parameters)

    def _described(self, values: dict[str, Any], parameters: int) -> GgufInfo:
        architecture = str(values.get("general.architecture", ""))

        def number(key: str, otherwise: int = 0) -> int:
            return _whole(values.get(f"{architecture}.{key}"), otherwise)

        layers = number("block_count")
        heads = number("attention.head_count", 1)
        size = number("embedding_length") // max(heads, 1)
        width = number("attention.key_length", size) + number("attention.value_length", size)
        kv_heads = values.get(f"{architecture}.attention.head_count_kv", heads)
        total = sum(kv_heads) if isinstance(kv_heads, list) else _whole(kv_heads, heads) * layers
        if not (architecture and parameters and layers and number("context_length")):
            raise ModelError(
                "the GGUF file holds no language model that llama.cpp can serve",
                value=str(self.path),
                hint="name a chat model, not a tokenizer, adapter or projector",
            )
        return GgufInfo(
            path=self.path,
            bytes=self.size,
            architecture=architecture,
            name=str(values.get("general.name") or self.path.stem),
            quantisation=FILE_TYPES.get(_whole(values.get("general.file_type"), -1), ""),
            parameters=parameters,
            context=number("context_length"),
            layers=layers,
            kv_width=total * width,
            vocabulary=len(values.get("tokenizer.ggml.tokens", ())),
            has_chat_template="tokenizer.chat_template" in values,
        )

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
            raise _truncated(self.path, self.size)
        return parameters

    def _value(self, kind: int) -> Any:  # noqa: ANN401 - a file may hold any of the types
        if kind == STRING:
            return self._string()
        if kind == ARRAY:
            return self._array(self._scalar("I"), self._scalar("Q"))
        return self._scalar(self._letter(kind))

    def _array(self, kind: int, count: int) -> Sequence[Any]:
        if kind == STRING:
            self._skip_strings(count)
            return range(count)
        letter = self._letter(kind)
        if count > KEPT_ITEMS:
            self._move(count * struct.calcsize(letter))
            return range(count)
        return [self._scalar(letter) for _ in range(count)]

    def _skip_strings(self, count: int) -> None:
        length_at, at = struct.Struct("<Q").unpack_from, self.at
        try:
            for _ in range(count):
                at += 8 + length_at(self.view, at)[0]
        except (struct.error, OverflowError):
            raise _truncated(self.path, self.size) from None
        self.at = at
        self._move(0)

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
            raise _truncated(self.path, self.size)
        return start

    def _broken(self, what: str) -> ModelError:
        return ModelError(
            f"the GGUF file is damaged: {what}",
            value=str(self.path),
            hint="compare it with its published SHA-256: `carrel models verify`",
        )
