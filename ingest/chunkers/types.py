"""What a chunker is given and what it gives back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

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


class Chunker(Protocol):
    """Cut the blocks of one document.

    The cuts come in reading order, every character that is not white space is in one of them, and
    equal blocks give equal cuts.
    """

    def cut(self, blocks: Sequence[Block]) -> Iterator[ChunkSpan]:
        """Yield the chunks of a document."""


def cuts(run: BlockRun, spans: Iterable[Span]) -> Iterator[ChunkSpan]:
    """Yield the spans of a run as cuts, those that hold something."""
    for start, end in spans:
        if end > start:
            yield ChunkSpan(run, start, end)
