"""Cut texts into the pieces of a SentencePiece vocabulary, with their places in the text."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from core.errors import ModelError
from models.packed_weights import PackedWeights

# Fields and values of sentencepiece_model.proto, which is written by hand here: the module that
# sentencepiece brings for it asks for a newer protobuf than other libraries allow.
PIECES, TRAINER, NORMALISER = 1, 2, 3
NORMAL, UNKNOWN, CONTROL = 1, 2, 3
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
        from sentencepiece import SentencePieceProcessor

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
    from sentencepiece import SentencePieceTrainer

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
