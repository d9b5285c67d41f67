"""The reader: which sentence of a passage answers a question, or that none does.

A fine-tuned copy of the upper layers of the embedded encoder, which sees question and passage
together (`scripts/train_reader.py`). Its lower layers and its words are the encoder's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from core.errors import ModelError
from models.digest import files_digest
from models.folder import ModelFolder
from models.onnx_session import OnnxSession, RunOptions, Tokenizes, ensure_onnx
from models.packed_export import IR_VERSION, OPSETS, EncoderGraph
from models.packed_weights import BLOCK, PackedWeights, unpacked
from models.table import READER, published_weights
from models.vectors import SpanPassage, Vectors

if TYPE_CHECKING:
    from models.packed_weights import Pieces


FILE = Path(__file__).with_name("reader.npz")
VERSION = 1  # of the file in the cache
QUESTION, HEADING = 40, 24  # pieces of each that are read at most
WINDOW = 210  # of the sentences; the reader was trained on as many
LEAST = -20.0  # log odds of a sentence that was not read
VALUE = 24  # pieces of what answers in a sentence


class _Read(NamedTuple):
    """Hold what is read together, and the pieces (first, after the last) of each span.

    `offsets` are those of the pieces in the text, of which the first is number `base`.
    """

    ids: list[int]
    places: list[tuple[int, int]]
    offsets: list[tuple[int, int]]
    base: int


class SentenceReader:
    """Read passages for the sentences that answer; safe to share between threads."""

    def __init__(self, session: OnnxSession) -> None:
        """Take an open graph with the encoder's tokenizer."""
        self._session = session

    def read(self, question: str, passages: Sequence[SpanPassage]) -> list[Vectors]:
        """Return a row for each sentence of each passage: log odds, start, end.

        The odds are against "none answers": the log of the sum over the pieces of a sentence of
        exp(start), the same of exp(end), less twice the null logit (Devlin et al. 2019, arXiv
        1810.04805, section 4.3). What answers in it likeliest stands from start to end in the text.
        """
        asked = self._pieces(f"query: {question}")[:QUESTION]
        given = [self._given(asked, one) for one in passages]
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

    def _given(self, asked: list[int], passage: SpanPassage) -> _Read:
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
    """Return the first and the last piece of what answers likeliest, shape (pieces, 2) given."""
    both = logits[:, :1] + logits[:, 1]
    whole = np.triu(both - both.min() + 1) - np.triu(both - both.min() + 1, VALUE)
    start, end = np.unravel_index(int(whole.argmax()), whole.shape)
    return int(start), int(end)


class _WordSession(OnnxSession):
    """Feed a graph with the vectors of words, which are looked up in the encoder's own file."""

    def look_up(self, weights: PackedWeights) -> None:
        """Use the words of these weights."""
        self._words = weights.rows("emb.word", weights.width)

    def _feed(self, encodings: Sequence[Any]) -> dict[str, Any]:
        (ids,) = [np.array(one.ids) for one in encodings]
        return {"words": unpacked(self._words[ids]).values()[None]}


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

    target = cache_dir / f"reader-{own[:16]}-{digest[:8]}-v{VERSION}.onnx"
    write: Callable[[Path], None] = lambda at: export_reader(encoder, FILE, at)  # noqa: E731
    onnx = ensure_onnx(target, write, lambda _: None)
    session = _WordSession(onnx, ModelFolder(FILE.parent, READER), options, tokenizer)
    session.look_up(PackedWeights(encoder))
    return SentenceReader(session)


if TYPE_CHECKING:
    Floats = NDArray[np.float32]

ZERO = 128  # what stands for 0 in a matrix at 8 bits


class Rounded(NamedTuple):
    """Hold a matrix at 8 bits: numbers (rows, columns) and a scale for each row."""

    numbers: NDArray[np.int8]
    scales: Floats

    def values(self) -> Floats:
        """Return the weights, shape (rows, columns)."""
        return self.numbers.astype(np.float32) * self.scales[:, None].astype(np.float32)


class ReaderWeights(PackedWeights):
    """Give the tensors of the encoder, but those that the reader has itself."""

    def __init__(self, encoder: Path, reader: Path) -> None:
        """Read both files."""
        super().__init__(encoder)
        with np.load(reader, allow_pickle=False) as file:
            self._own = dict(file)

    def owns(self, name: str) -> bool:
        """Tell whether a matrix is the reader's own."""
        return f"{name}.scales" in self._own

    def rounded(self, name: str) -> Rounded:
        """Return a matrix of the reader."""
        return Rounded(self._own[name], self._own[f"{name}.scales"].astype(np.float32))

    def vector(self, name: str) -> Floats:
        """Return a tensor that is not packed, flat."""
        own = self._own.get(name)
        return super().vector(name) if own is None else own.astype(np.float32)

    def matrix(self, name: str, columns: int) -> Any:  # noqa: ANN401 - both kinds have `values`
        """Return a tensor of shape (outputs, columns)."""
        return self.rounded(name) if self.owns(name) else super().matrix(name, columns)


class ReaderGraph(EncoderGraph):
    """Collect the nodes of the reader."""

    weights: ReaderWeights

    def words(self) -> str:
        """Take the vectors of words as they are given."""
        return "words"

    def first(self, hidden: str) -> str:
        """Return the state of the first token, shape (1, 1, width)."""
        return self.node("Gather", [hidden, self.tensor(np.array([0]))], axis=1)

    def outer(self, name: str, value: str, columns: int) -> str:
        """Multiply by the second matrix of a feed-forward layer, at 8 bits where it is own."""
        if not self.weights.owns(f"{name}.w"):
            return super().outer(name, value, columns)
        rounded = self.weights.rounded(f"{name}.w")
        numbers = (rounded.numbers.astype(np.int16) + ZERO).astype(np.uint8)
        rows = len(numbers)
        scales = np.repeat(rounded.scales[:, None], columns // BLOCK, axis=1)
        return self.node(
            "MatMulNBits",
            [
                value,
                self.tensor(numbers.reshape(rows, -1, BLOCK)),
                self.tensor(scales.astype(np.float32).reshape(-1)),
            ],
            K=columns,
            N=rows,
            bits=8,
            block_size=BLOCK,
            accuracy_level=1,
        )


def export_reader(encoder: Path, reader: Path, target: Path) -> None:
    """Write the reader: words (1, tokens, width) in, logits of start, end and null out."""
    weights = ReaderWeights(encoder, reader)
    graph = ReaderGraph(weights)
    hidden = graph.embeddings()
    for layer in range(weights.layers):
        hidden = graph.layer(hidden, layer)
    for name, given in (("spans", hidden), ("null", graph.first(hidden))):
        matrix = weights.vector(f"{name}.w").reshape(weights.width, -1)
        product = graph.node("MatMul", [given, graph.tensor(matrix)])
        graph.node("Add", [product, graph.tensor(weights.vector(f"{name}.b"))], name)
    shape = [1, "tokens", weights.width]
    shapes: dict[str, list[int | str]] = {"spans": [1, "tokens", 2], "null": [1, 1, 1]}
    made = helper.make_graph(
        graph.nodes,
        "reader",
        [helper.make_tensor_value_info("words", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(k, TensorProto.FLOAT, v) for k, v in shapes.items()],
        graph.tensors,
    )
    opsets = [helper.make_opsetid(*opset) for opset in OPSETS.items()]
    onnx.save(helper.make_model(made, opset_imports=opsets, ir_version=IR_VERSION), target)
