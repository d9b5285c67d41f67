"""Cut a parsed document into chunks along its own seams: sentences, lines, rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from core.errors import OperatorError
from core.language.sentences import cut_span, sentence_spans
from ingest.types import Block, BlockKind, ParsedDocument

JOINT = "\n\n"
# A heading on its own: shorter than this, it goes with the text it announces.
_TINY = 40
# Records and annotations stay whole up to this many times the chunk size.
_WHOLE_FACTOR = 4
_DEFINITION = re.compile(
    r"(?:@|def |class |async |function |func |fn |pub |public |export |impl |struct |interface )"
)

Span = tuple[int, int]


class ChunkText(BaseModel):
    """Hold one chunk: an exact stretch of a block, or of blocks joined by a blank line.

    `page` is that of the first character; `ordinal` counts from 0 in the document.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    kind: BlockKind
    section: str
    page: int | None
    ordinal: int


class _Run(NamedTuple):
    """Blocks that are packed together; each page is that of the block starting at the offset."""

    text: str
    kind: BlockKind
    section: str
    pages: list[tuple[int, int | None]]


def split_document(document: ParsedDocument, *, chunk_size: int, overlap: int) -> list[ChunkText]:
    """Cut a document into chunks of at most `chunk_size` characters, in order, without repeats.

    Prose is cut between sentences, and each chunk repeats up to `overlap` characters of whole
    sentences of the one before; code is cut between lines, tables between rows, without overlap.
    Annotations and records are one chunk up to four times `chunk_size`.
    """
    if chunk_size < 1 or not 0 <= overlap < chunk_size:
        raise OperatorError(
            "The chunk overlap must be at least 0 and smaller than the chunk size",
            value=f"chunk_size={chunk_size}, overlap={overlap}",
            hint="Correct the ingest settings",
        )
    chunks: list[ChunkText] = []
    seen: set[str] = set()
    for run in _runs(document.blocks):
        for start, end in _chunk_spans(run, chunk_size, overlap):
            text = run.text[start:end]
            if text in seen:
                continue
            seen.add(text)
            page = next(page for offset, page in reversed(run.pages) if offset <= start)
            chunks.append(ChunkText(text=text, kind=run.kind, section=run.section, page=page,
                                    ordinal=len(chunks)))  # fmt: skip
    return chunks


def _runs(blocks: list[Block]) -> Iterator[_Run]:
    """Join neighbouring text blocks of one section and page; other blocks stand alone."""
    open_blocks: list[Block] = []
    for block in blocks:
        if not block.text.strip():
            continue
        if open_blocks and not _continues(open_blocks, block):
            yield _joined(open_blocks)
            open_blocks = []
        open_blocks.append(block)
    if open_blocks:
        yield _joined(open_blocks)


def _continues(open_blocks: list[Block], block: Block) -> bool:
    """Tell whether a block is packed with those before it."""
    last = open_blocks[-1]
    if block.kind != "text" or last.kind != "text":
        return False
    if block.section == last.section and block.page == last.page:
        return True
    tiny = sum(len(open_block.text.strip()) for open_block in open_blocks) < _TINY
    return tiny and block.section.startswith(last.section)


def _joined(blocks: list[Block]) -> _Run:
    """Join blocks; the last one's section is the most precise."""
    pages: list[tuple[int, int | None]] = []
    offset = 0
    for block in blocks:
        pages.append((offset, block.page))
        offset += len(block.text) + len(JOINT)
    text = JOINT.join(block.text for block in blocks)
    return _Run(text, blocks[0].kind, blocks[-1].section, pages)


def _chunk_spans(run: _Run, chunk_size: int, overlap: int) -> Iterator[Span]:
    """Choose the spans of a run that become chunks."""
    if run.kind in ("annotation", "record") and len(run.text.strip()) <= _WHOLE_FACTOR * chunk_size:
        return _trimmed(run.text)
    if run.kind == "code":
        return _pack(_code_spans(run.text, chunk_size), chunk_size, 0)
    if run.kind == "table":
        return _pack(_fitting(run.text, _line_spans(run.text), chunk_size), chunk_size, 0)
    sentences = _fitting(run.text, sentence_spans(run.text), chunk_size)
    return _pack(sentences, chunk_size, overlap)


def _trimmed(text: str) -> Iterator[Span]:
    """Take a text whole, without the white space around it."""
    end = len(text.rstrip())
    yield len(text) - len(text.lstrip()), end


def _fitting(text: str, spans: list[Span], limit: int) -> list[Span]:
    """Cut the spans that are longer than the limit at word boundaries."""
    return [
        piece
        for start, end in spans
        for piece in (cut_span(text, start, end, limit) if end - start > limit else [(start, end)])
    ]


def _pack(spans: list[Span], limit: int, overlap: int) -> Iterator[Span]:
    """Fill chunks with neighbouring spans; a chunk may begin with the last spans of the one before.

    The repeated spans never keep a new one out, so every chunk brings something new.
    """
    first = 0
    for index, (_, end) in enumerate(spans):
        if end - spans[first][0] <= limit:
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


def _line_spans(text: str) -> list[Span]:
    """Locate the lines that hold something, with their indentation."""
    spans: list[Span] = []
    place = 0
    for line in text.splitlines(keepends=True):
        if line.strip():
            spans.append((place, place + len(line.rstrip())))
        place += len(line)
    return spans


def _code_spans(text: str, limit: int) -> list[Span]:
    """Locate the paragraphs and top-level definitions of code; lines where one is too long."""
    lines = _line_spans(text)
    groups: list[list[Span]] = []
    for line in lines:
        after_blank = bool(groups) and text.count("\n", groups[-1][-1][1], line[0]) > 1
        definition = _DEFINITION.match(text, line[0]) is not None
        decorated = bool(groups) and text.startswith("@", groups[-1][-1][0])
        if not groups or after_blank or (definition and not decorated):
            groups.append([])
        groups[-1].append(line)
    spans: list[Span] = []
    for group in groups:
        start, end = group[0][0], group[-1][1]
        spans.extend([(start, end)] if end - start <= limit else _fitting(text, group, limit))
    return spans
