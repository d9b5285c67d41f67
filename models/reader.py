"""The reader: which sentence of a passage answers a question, or that none does.

A fine-tuned copy of the upper layers of the embedded encoder, which sees question and passage
together (`scripts/train_reader.py`). Its lower layers and its words are the encoder's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from core.errors import ModelError
from models.digest import files_digest
from models.folder import ModelFolder
from models.onnx_cache import ensure_onnx
from models.onnx_session import OnnxSession, RunOptions, Tokenizes
from models.packed_weights import PackedWeights, unpacked
from models.table import READER, published_weights
from models.vectors import Passage, Vectors

if TYPE_CHECKING:
    from models.piece_tokenizer import Pieces

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

    def read(self, question: str, passages: Sequence[Passage]) -> list[Vectors]:
        """Return a row for each sentence of each passage: log odds, start, end.

        The odds are against "none answers": the log of the sum over the pieces of a sentence of
        exp(start), the same of exp(end), less twice the null logit (Devlin et al. 2019, arXiv
        1810.04805, section 4.3). What answers in it likeliest stands from start to end in the text.
        """
        import numpy as np

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

    def _given(self, asked: list[int], passage: Passage) -> _Read:
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
    import numpy as np

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
        import numpy as np

        (ids,) = [np.array(one.ids) for one in encodings]
        return {"words": unpacked(self._words[ids]).values()[None]}


def open_reader(
    encoder: Path, digest: str, tokenizer: Tokenizes, options: RunOptions, cache_dir: Path
) -> SentenceReader:
    """Open the reader of an encoder; raise ModelError for a file that is not its own."""
    hint = "install Carrel again, or set answer_reader=false"
    if not FILE.is_file():
        raise ModelError("the reader's weights are missing", value=str(FILE), hint=hint)
    own = files_digest([FILE], cache_dir)
    if own != published_weights()[READER]["sha256"]:
        rule = "the reader's weights are damaged or of another build"
        raise ModelError(rule, value=str(FILE), hint=hint)
    if published_weights()[READER]["encoder"] != digest:
        raise ModelError("the reader belongs to another encoder", value=digest[:16], hint=hint)
    from models.reader_export import export_reader

    target = cache_dir / f"reader-{own[:16]}-{digest[:8]}-v{VERSION}.onnx"
    write: Callable[[Path], None] = lambda at: export_reader(encoder, FILE, at)  # noqa: E731
    onnx = ensure_onnx(target, write, lambda _: None)
    session = _WordSession(onnx, ModelFolder(FILE.parent, READER), options, tokenizer)
    session.look_up(PackedWeights(encoder))
    return SentenceReader(session)
