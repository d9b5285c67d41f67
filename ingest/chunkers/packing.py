"""Fit pieces of text into chunks, never through a character; what every chunker takes and gives."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import NamedTuple

from core.language.sentences import cut_span
from ingest.types import Block, BlockKind

Span = tuple[int, int]


class BlockSpan(NamedTuple):
    """Place one block in the text of a run."""

    start: int
    end: int
    kind: BlockKind
    page: int | None


class BlockRun(NamedTuple):
    """Hold neighbouring blocks that are cut together, joined by a blank line."""

    text: str
    section: str
    parts: list[BlockSpan]


class ChunkSpan(NamedTuple):
    """The place of one chunk: exactly `run.text[start:end]`, without white space around it."""

    run: BlockRun
    start: int
    end: int

    @property
    def text(self) -> str:
        """Return the chunk as it stands in the document."""
        return self.run.text[self.start : self.end]

    @property
    def page(self) -> int | None:
        """Return the page of the first character."""
        return next(part.page for part in reversed(self.run.parts) if part.start <= self.start)

    @property
    def kind(self) -> BlockKind:
        """Return the kind of all the blocks it touches, "text" when they differ."""
        kinds = {
            part.kind for part in self.run.parts if part.start < self.end and part.end > self.start
        }
        return kinds.pop() if len(kinds) == 1 else "text"


PROSE: frozenset[BlockKind] = frozenset({"text"})
SECTION: frozenset[BlockKind] = frozenset({"text", "code", "table"})


class Chunker:
    """Cut the blocks of one document, in runs of the kinds that are cut `together`.

    The cuts come in reading order, every character that is not white space is in one of them, and
    equal blocks give equal cuts.
    """

    together = PROSE

    def cut(self, blocks: Sequence[Block]) -> Iterator[ChunkSpan]:
        """Yield the chunks of a document, those that hold something."""
        for run in runs(blocks, self.together):
            for start, end in self.spans(run):
                if end > start:
                    yield ChunkSpan(run, start, end)

    def spans(self, run: BlockRun) -> Iterable[Span]:
        """Locate the chunks of one run."""
        raise NotImplementedError


_ZERO_WIDTH_JOINER = "\u200d"
_FLAGS = range(0x1F1E6, 0x1F200)  # regional indicators in Unicode
_SKIN_TONES = range(0x1F3FB, 0x1F400)  # emoji modifiers in Unicode
# Longer runs of marks are not writing; a cut inside them harms nobody.
_REACH = 32  # chosen, not measured


def is_torn(text: str, place: int) -> bool:
    """Tell whether a cut before text[place] would tear a visible character apart.

    This follows the rules of Unicode Annex 29 that occur in text: combining marks, joiners,
    variation selectors, skin tones, flags, and a carriage return with its line feed.
    """
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if before.isascii() and after.isascii():
        return before == "\r" and after == "\n"
    if after == _ZERO_WIDTH_JOINER or before == _ZERO_WIDTH_JOINER:
        return True
    if unicodedata.category(after).startswith("M") or ord(after) in _SKIN_TONES:
        return True
    first = place
    while first > 0 and ord(text[first - 1]) in _FLAGS:
        first -= 1
    return ord(after) in _FLAGS and (place - first) % 2 == 1  # two of them are one flag


def last_boundary(text: str, start: int, stop: int) -> int:
    """Return the last place in (start, stop] to cut: at a space, else between characters."""
    if stop >= len(text):
        return len(text)
    for place in range(stop, start, -1):
        if text[place].isspace() or text[place - 1].isspace():
            return place
    for place in range(stop, max(start, stop - _REACH), -1):
        if not is_torn(text, place):
            return place
    return stop


def first_boundary(text: str, start: int, stop: int) -> int:
    """Return the first place in [start, stop) to begin at: after a space, else a character."""
    for place in range(start, stop):
        if place == 0 or text[place - 1].isspace():
            return place
    for place in range(start, min(stop, start + _REACH)):
        if not is_torn(text, place):
            return place
    return stop


def trim_span(text: str) -> Span:
    """Locate a text without the white space around it."""
    end = len(text.rstrip())
    return min(len(text) - len(text.lstrip()), end), end


def fitting(text: str, spans: Iterable[Span], limit: int) -> list[Span]:
    """Cut the spans that are longer than the limit at word boundaries."""
    return [
        piece
        for start, end in spans
        for piece in (cut_span(text, start, end, limit) if end - start > limit else [(start, end)])
    ]


def pack(spans: Sequence[Span], limit: int, overlap: int = 0) -> Iterator[Span]:
    """Fill chunks with neighbouring spans; a chunk may begin with the last spans of the one before.

    The repeated spans never keep a new one out, so every chunk brings something new. A span that
    is longer than the limit becomes a chunk of its own.
    """
    first = 0
    for index, (_, end) in enumerate(spans):
        if index == first or end - spans[first][0] <= limit:
            continue
        last_end = spans[index - 1][1]
        yield spans[first][0], last_end
        back = index
        while (
            back - 1 > first
            and last_end - spans[back - 1][0] <= overlap
            and end - spans[back - 1][0] <= limit
        ):
            back -= 1
        first = back
    if spans:
        yield spans[first][0], spans[-1][1]


def line_spans(text: str, start: int = 0, end: int | None = None) -> list[Span]:
    """Locate the lines that hold something, with their indentation."""
    spans: list[Span] = []
    place = start
    for line in text[start:end].splitlines(keepends=True):
        if line.strip():
            spans.append((place, place + len(line.rstrip())))
        place += len(line)
    return spans


JOINT = "\n\n"
# A heading on its own: shorter than this, it goes with the text it announces.
_TINY = 40  # characters; chosen, not measured


def runs(blocks: Iterable[Block], together: Set[BlockKind]) -> Iterator[BlockRun]:
    """Join neighbouring blocks of these kinds in one section and page; others stand alone.

    A page is not crossed, since a citation names the page on which its chunk begins; only a heading
    alone at the end of a page goes with the text that follows.
    """
    open_blocks: list[Block] = []
    for block in blocks:
        if not block.text.strip():
            continue
        if open_blocks and not _continues(open_blocks, block, together):
            yield _join_blocks(open_blocks)
            open_blocks = []
        open_blocks.append(block)
    if open_blocks:
        yield _join_blocks(open_blocks)


def _continues(open_blocks: list[Block], block: Block, together: Set[BlockKind]) -> bool:
    last = open_blocks[-1]
    if block.kind not in together or last.kind not in together:
        return False
    if block.section == last.section and block.page == last.page:
        return True
    tiny = sum(len(open_block.text.strip()) for open_block in open_blocks) < _TINY
    return tiny and last.kind == "text" and block.section.startswith(last.section)


def _join_blocks(blocks: list[Block]) -> BlockRun:
    """Join blocks; the last one's section is the most precise."""
    parts: list[BlockSpan] = []
    offset = 0
    for block in blocks:
        parts.append(BlockSpan(offset, offset + len(block.text), block.kind, block.page))
        offset += len(block.text) + len(JOINT)
    return BlockRun(JOINT.join(block.text for block in blocks), blocks[-1].section, parts)
