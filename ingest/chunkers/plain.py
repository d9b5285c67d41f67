"""Chunkers that cut by length, by sentences, and by headings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from core.language.sentences import paragraph_spans, sentence_spans
from ingest.chunkers.code import paragraph_units, statement_units
from ingest.chunkers.packing import (
    PROSE,
    SECTION,
    check_sizes,
    first_boundary,
    fitting,
    last_boundary,
    line_spans,
    pack,
    runs,
    trimmed,
)
from ingest.chunkers.types import BlockRun, BlockSpan, ChunkSpan, Span, cuts
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
            fresh = _whole_character(text, end)
            again = first_boundary(text, max(end - self._overlap, start + 1), end)
            start = _whole_character(text, again)
            if start + self._size <= fresh:
                start = fresh


def _whole_character(text: str, place: int) -> int:
    """Return the first place from here that holds more than white space."""
    while text[place].isspace():
        place += 1
    return place


class StructuralChunker:
    """Make one chunk of each section: its prose, code and tables up to `most` characters.

    A longer section is cut between paragraphs, code samples and rows, and a code sample keeps the
    paragraph that introduces it. A sample of more than `most` characters is cut between functions
    and classes, then between methods, then between lines.
    """

    def __init__(self, most: int, others: SentenceChunker) -> None:
        """Keep up to `most` characters whole; records and annotations are left to `others`."""
        check_sizes(most, 0)
        self._most = most
        self._others = others

    def cut(self, blocks: Sequence[Block]) -> Iterator[ChunkSpan]:
        """Yield the chunks of a document."""
        for run in runs(blocks, SECTION):
            yield from cuts(run, self._spans(run))

    def _spans(self, run: BlockRun) -> Iterable[Span]:
        kinds = {part.kind for part in run.parts}
        if kinds & {"annotation", "record"}:
            return self._others.spans(run)
        if len(run.text.strip()) <= self._most:
            return [_shown(run.text, run.parts[0], len(run.text))]
        return pack(list(self._with_introductions(run)), self._most)

    def _with_introductions(self, run: BlockRun) -> Iterator[Span]:
        """Yield the units of a section, the first of a code sample with the paragraph before it."""
        last: Span | None = None
        for part in run.parts:
            for number, unit in enumerate(self._units(run.text, part)):
                if last is None:
                    last = unit
                elif number == 0 and part.kind == "code" and unit[1] - last[0] <= self._most:
                    last = last[0], unit[1]
                else:
                    yield last
                    last = unit
        if last is not None:
            yield last

    def _units(self, text: str, part: BlockSpan) -> list[Span]:
        """Locate what is never cut inside one block."""
        if part.kind == "code" and part.end - part.start > self._most:
            return statement_units(text, part.start, part.end, self._most)
        if part.kind == "code":
            return [_shown(text, part, part.end)]
        if part.kind == "table":
            return fitting(text, line_spans(text, part.start, part.end), self._most)
        shown = text[part.start : part.end]
        units: list[Span] = []
        for start, end in paragraph_spans(shown):
            if end - start <= self._most:
                units.append((part.start + start, part.start + end))
                continue
            sentences = fitting(shown[start:end], sentence_spans(shown[start:end]), self._most)
            offset = part.start + start
            units += [(offset + first, offset + last) for first, last in sentences]
        return units


def _shown(text: str, part: BlockSpan, end: int) -> Span:
    """Locate what a part and those after it hold; code keeps its first line's indentation."""
    if part.kind == "text":
        first, last = trimmed(text[part.start : end])
        return part.start + first, part.start + last
    lines = line_spans(text, part.start, end)
    return lines[0][0], lines[-1][1]
