"""Fill chunks with neighbouring pieces of a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set

from core.errors import OperatorError
from core.language.sentences import cut_span
from ingest.chunkers.types import BlockRun, BlockSpan, Span
from ingest.types import Block, BlockKind


def check_sizes(chunk_size: int, overlap: int) -> None:
    """Refuse an overlap that would leave a chunk nothing new."""
    if chunk_size < 1 or not 0 <= overlap < chunk_size:
        raise OperatorError(
            "The chunk overlap must be at least 0 and smaller than the chunk size",
            value=f"chunk_size={chunk_size}, overlap={overlap}",
            hint="Correct the ingest settings",
        )


def trimmed(text: str) -> Span:
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
_TINY = 40

PROSE: frozenset[BlockKind] = frozenset({"text"})
SECTION: frozenset[BlockKind] = frozenset({"text", "code", "table"})


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
            yield _joined(open_blocks)
            open_blocks = []
        open_blocks.append(block)
    if open_blocks:
        yield _joined(open_blocks)


def _continues(open_blocks: list[Block], block: Block, together: Set[BlockKind]) -> bool:
    """Tell whether a block is packed with those before it."""
    last = open_blocks[-1]
    if block.kind not in together or last.kind not in together:
        return False
    if block.section == last.section and block.page == last.page:
        return True
    tiny = sum(len(open_block.text.strip()) for open_block in open_blocks) < _TINY
    return tiny and last.kind == "text" and block.section.startswith(last.section)


def _joined(blocks: list[Block]) -> BlockRun:
    """Join blocks; the last one's section is the most precise."""
    parts: list[BlockSpan] = []
    offset = 0
    for block in blocks:
        parts.append(BlockSpan(offset, offset + len(block.text), block.kind, block.page))
        offset += len(block.text) + len(JOINT)
    return BlockRun(JOINT.join(block.text for block in blocks), blocks[-1].section, parts)
