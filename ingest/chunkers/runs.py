"""Join the blocks that a chunker may put into one chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from ingest.chunkers.types import Part, Run
from ingest.types import Block, BlockKind

JOINT = "\n\n"
# A heading on its own: shorter than this, it goes with the text it announces.
_TINY = 40

PROSE: frozenset[BlockKind] = frozenset({"text"})
SECTION: frozenset[BlockKind] = frozenset({"text", "code", "table"})


def runs(blocks: Iterable[Block], together: Set[BlockKind]) -> Iterator[Run]:
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


def _joined(blocks: list[Block]) -> Run:
    """Join blocks; the last one's section is the most precise."""
    parts: list[Part] = []
    offset = 0
    for block in blocks:
        parts.append(Part(offset, offset + len(block.text), block.kind, block.page))
        offset += len(block.text) + len(JOINT)
    return Run(JOINT.join(block.text for block in blocks), blocks[-1].section, parts)
