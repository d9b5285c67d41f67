"""Pack whole sentences; code is cut between lines, tables between rows, records stay whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from core.language.sentences import sentence_spans
from ingest.chunkers.code import paragraph_units
from ingest.chunkers.packing import PROSE, check_sizes, fitting, line_spans, pack, runs, trimmed
from ingest.chunkers.types import BlockRun, ChunkSpan, Span, cuts
from ingest.types import Block

# Records and annotations stay whole up to this many times the chunk size.
WHOLE_FACTOR = 4


class SentenceChunker:
    """Fill chunks of at most `chunk_size` characters with whole sentences.

    Each chunk of prose repeats up to `overlap` characters of whole sentences of the one before.
    """

    def __init__(self, chunk_size: int, overlap: int) -> None:
        """Refuse sizes that cannot be met."""
        check_sizes(chunk_size, overlap)
        self._size = chunk_size
        self._overlap = overlap

    def cut(self, blocks: Sequence[Block]) -> Iterator[ChunkSpan]:
        """Yield the chunks of a document."""
        for run in runs(blocks, PROSE):
            yield from cuts(run, self.spans(run))

    def spans(self, run: BlockRun) -> Iterable[Span]:
        """Locate the chunks of one run."""
        kind = run.parts[0].kind
        if is_whole(run, self._size):
            return [trimmed(run.text)]
        if kind == "code":
            return pack(paragraph_units(run.text, self._size), self._size)
        if kind == "table":
            return pack(fitting(run.text, line_spans(run.text), self._size), self._size)
        sentences = fitting(run.text, sentence_spans(run.text), self._size)
        return pack(sentences, self._size, self._overlap)


def is_whole(run: BlockRun, chunk_size: int) -> bool:
    """Tell whether a run is an annotation or a record that is not split."""
    kind = run.parts[0].kind
    return kind in ("annotation", "record") and len(run.text.strip()) <= WHOLE_FACTOR * chunk_size
