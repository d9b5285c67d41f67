"""Cut windows of a fixed size with overlap, at word boundaries: the classic baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingest.chunkers.graphemes import first_boundary, last_boundary
from ingest.chunkers.packing import PROSE, check_sizes, runs, trimmed
from ingest.chunkers.sentence import is_whole
from ingest.chunkers.types import ChunkSpan, Span, cuts
from ingest.types import Block


class FixedChunker:
    """Cut windows of at most `chunk_size` characters that share at most `overlap` with the last.

    Records and annotations stay whole, as everywhere.
    """

    def __init__(self, chunk_size: int, overlap: int) -> None:
        """Refuse sizes that cannot be met."""
        check_sizes(chunk_size, overlap)
        self._size = chunk_size
        self._overlap = overlap

    def cut(self, blocks: Sequence[Block]) -> Iterator[ChunkSpan]:
        """Yield the chunks of a document."""
        for run in runs(blocks, PROSE):
            whole = is_whole(run, self._size)
            yield from cuts(run, [trimmed(run.text)] if whole else self._windows(run.text))

    def _windows(self, text: str) -> Iterator[Span]:
        """Locate the windows of a text, each without the white space around it."""
        start, stop = trimmed(text)
        fresh = start  # what no window holds yet
        while start < stop:
            end = min(last_boundary(text, fresh, start + self._size), stop)
            yield start, start + len(text[start:end].rstrip())
            if end >= stop:
                return
            fresh = _shown(text, end)
            again = first_boundary(text, max(end - self._overlap, start + 1), end)
            start = _shown(text, again)
            if start + self._size <= fresh:
                start = fresh


def _shown(text: str, place: int) -> int:
    """Return the first place from here that holds more than white space."""
    while text[place].isspace():
        place += 1
    return place
