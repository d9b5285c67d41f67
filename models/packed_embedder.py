"""The multilingual embedder out of its packed weights, with ONNX and without torch, and its reader.

The reader tells which sentence of a passage answers a question, or that none does. It is a
fine-tuned copy of the upper layers of the encoder, which sees question and passage together
(`scripts/train_reader.py`). Its lower layers and its words are the encoder's own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from core.errors import ModelError
from models.folder import (
    CARRIERS,
    EMBEDDED,
    ENGLISH,
    PACKED,
    EmbedderSpec,
    ModelFolder,
    files_digest,
)
from models.onnx_runtime import OnnxSession, OnnxSpanEmbedder, RunOptions, Tokenizes, ensure_onnx
from models.packed_weights import PackedWeights, PieceTokenizer, export_pieces, unpack
from models.table import READER, published_weights
from models.vectors import SpanPassage, Vectors

if TYPE_CHECKING:
    from models.packed_weights import Pieces

FILE = Path(__file__).with_name("reader.npz")
READER_VERSION = 1  # of the file in the cache
QUESTION, HEADING = 40, 24  # pieces of each that are read at most, as in training
WINDOW = 210  # of the sentences; the reader was trained on as many
LEAST = -20.0  # log odds of a sentence that was not read
VALUE = 24  # pieces of what answers in a sentence


class _Read(NamedTuple):
    """Hold the pieces that are read together, and the range (first, after the last) of each span.

    `offsets` are those of the pieces in the text, of which the first is number `base`.
    """

    ids: list[int]
    places: list[tuple[int, int]]
    offsets: list[tuple[int, int]]
    base: int


class SentenceReader:
    """Read passages for the sentences that answer; safe to share between threads."""

    def __init__(self, session: OnnxSession) -> None:
        self._session = session

    def read(self, question: str, passages: Sequence[SpanPassage]) -> list[Vectors]:
        """Return a row for each sentence of each passage: log odds, start, end.

        The odds are against "none answers": the log of the sum over the pieces of a sentence of
        exp(start), the same of exp(end), less twice the null logit (Devlin et al. 2019, arXiv
        1810.04805, section 4.3). What answers in it likeliest stands from start to end in the text.
        """
        asked = self._pieces(f"query: {question}")[:QUESTION]
        given = [self._build_input(asked, one) for one in passages]
        found: list[Vectors] = [
            np.tile(np.array([LEAST, 0, 0], dtype=np.float32), (len(one.spans), 1))
            for one in passages
        ]
        for rows, (ends, null) in self._session.run(given, ["spans", "null"]):
            for line, row in enumerate(rows):
                one = given[row]
                for number, (first, last) in enumerate(one.places):
                    if first < last:
                        inside = ends[line, first:last]
                        odds = np.logaddexp.reduce(inside, axis=0).sum() - 2 * null[line, 0, 0]
                        start, end = _likeliest(inside)
                        start = one.offsets[first + start - one.base][0]
                        end = one.offsets[first + end - one.base][1]
                        found[row][number] = max(LEAST, float(odds)), start, end
        return found

    def _build_input(self, asked: list[int], passage: SpanPassage) -> _Read:
        heading = self._pieces(f"passage: {passage.heading}")[:HEADING]
        before = [0, *asked, 2, 2, *heading]
        text: Pieces = self._session.encode([passage.text])[0]
        ids, offsets = text.ids[1:-1][:WINDOW], text.offsets[1:-1][:WINDOW]
        places = []
        for start, end in passage.spans:
            touched = [
                place for place, (a, b) in enumerate(offsets) if a < end and b > start and b > a
            ]
            shift = len(before)
            places.append((shift + touched[0], shift + touched[-1] + 1) if touched else (0, 0))
        return _Read([*before, *ids, 2], places, offsets, len(before))

    def _pieces(self, text: str) -> list[int]:
        ids: list[int] = self._session.encode([text])[0].ids[1:-1]
        return ids


def _likeliest(logits: Vectors) -> tuple[int, int]:
    """Return the first and last piece of the likeliest answer, from logits of shape (pieces, 2)."""
    both = logits[:, :1] + logits[:, 1]
    scores = np.triu(both - both.min() + 1) - np.triu(both - both.min() + 1, VALUE)
    start, end = np.unravel_index(int(scores.argmax()), scores.shape)
    return int(start), int(end)


class _WordSession(OnnxSession):
    """Feed a graph with the vectors of words, which are looked up in the encoder's own file."""

    def look_up(self, weights: PackedWeights) -> None:
        self._words = weights.rows("emb.word", weights.width)

    def _feed(self, encodings: Sequence[Any]) -> dict[str, Any]:
        (ids,) = [np.array(one.ids) for one in encodings]
        return {"words": unpack(self._words[ids]).values()[None]}


def open_reader(
    encoder: Path, digest: str, tokenizer: Tokenizes, options: RunOptions, cache_dir: Path
) -> SentenceReader:
    """Open the reader of an encoder; raise ModelError for a file that is not its own."""
    hint = "install Carrel again, or set answering.reader=false"
    if not FILE.is_file():
        raise ModelError("the reader's weights are missing", value=str(FILE), hint=hint)
    own = files_digest([FILE], cache_dir)
    if own != published_weights()[READER]["sha256"]:
        rule = "the reader's weights are damaged or of another build"
        raise ModelError(rule, value=str(FILE), hint=hint)
    if published_weights()[READER]["encoder"] != digest:
        raise ModelError("the reader belongs to another encoder", value=digest[:16], hint=hint)

    target = cache_dir / f"reader-{own[:16]}-{digest[:8]}-v{READER_VERSION}.onnx"

    def write(at: Path) -> None:
        from models.packed_export import export_reader  # late, as `_export_onnx`

        export_reader(encoder, FILE, at)

    onnx = ensure_onnx(target, write)
    session = _WordSession(onnx, ModelFolder(FILE.parent, READER), options, tokenizer)
    session.look_up(PackedWeights(encoder))
    return SentenceReader(session)


VERSION = 1  # of the files in the cache; another one makes them again


class PackedEmbedder(OnnxSpanEmbedder):
    """Embed with the multilingual model, and read with the reader made from it."""

    reads = True

    def __init__(
        self, session: OnnxSession, spec: EmbedderSpec, opened: Callable[[], SentenceReader]
    ) -> None:
        """Take what OnnxSpanEmbedder takes; the reader is opened when it is first asked."""
        super().__init__(session, spec)
        self._opened = opened
        self._reader: SentenceReader | None = None
        self._opening = threading.Lock()

    def read(self, question: str, passages: Sequence[SpanPassage]) -> list[Vectors]:
        """Return what SentenceReader returns."""
        with self._opening:
            if self._reader is None:
                self._reader = self._opened()
        return self._reader.read(question, passages)


def _export_onnx(weights: PackedWeights, target: Path) -> None:
    from models.packed_export import export_packed  # late: once for each user, and `onnx` is large

    export_packed(weights, target)


def open_packed(
    folder: ModelFolder, spec: EmbedderSpec, options: RunOptions, cache_dir: Path, backend: str
) -> PackedEmbedder:
    """Open the multilingual embedded model; raise ModelError for weights that are not its own."""
    path = folder.path / PACKED
    hint = f"reinstall the package {CARRIERS[EMBEDDED].package}"
    if spec.digest != published_weights()[EMBEDDED]["sha256"]:
        rule = f"the weights of '{EMBEDDED}' are damaged or of another build"
        raise ModelError(rule, value=str(path), hint=hint)
    if backend == "torch":
        raise ModelError(
            f"the model '{EMBEDDED}' runs as ONNX only",
            value="embedder_backend=torch",
            hint=f"set embedding.backend=auto, or embedder={ENGLISH}",
        )

    def export(write: Callable[[PackedWeights, Path], None], kind: str) -> Path:
        target = cache_dir / f"embedder-{spec.digest[:16]}-v{VERSION}.{kind}"
        return ensure_onnx(target, lambda at: write(PackedWeights(path), at))

    tokenizer = PieceTokenizer(export(export_pieces, "model"), spec.max_tokens)
    alone = replace(options, batch_size=1)  # as its int8 ranges ask for
    onnx = export(_export_onnx, "onnx")
    opened = partial(open_reader, path, spec.digest, tokenizer, alone, cache_dir)
    return PackedEmbedder(OnnxSession(onnx, folder, alone, tokenizer), spec, opened)
