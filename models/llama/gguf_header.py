"""Walk through the header of a GGUF file: its values and its tensors.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3).
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

from core.errors import ModelError
from models.llama.ggml_types import BLOCKS

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
KEPT_ITEMS = 1024  # of longer arrays, which are vocabularies, the length alone is kept
MOST_DIMENSIONS = 4
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
            raise truncated(self.path, self.size)
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
            raise truncated(self.path, self.size) from None
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
            raise truncated(self.path, self.size)
        return start

    def _broken(self, what: str) -> ModelError:
        return ModelError(
            f"the GGUF file is damaged: {what}",
            value=str(self.path),
            hint="compare it with its published SHA-256: `carrel models verify`",
        )


def truncated(path: Path, size: int) -> ModelError:
    """Return the error for a file of which only `size` bytes are there."""
    return ModelError(
        f"the GGUF file is cut off after {size:,} bytes",
        value=str(path),
        hint="fetch it again: `carrel models pull NAME` goes on where a download has ended",
    )
