"""Cut a parsed document into chunks: numbered, with their page and section, without repeats."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from ingest.chunkers.types import Chunker
from ingest.types import BlockKind, ParsedDocument


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


def split_document(document: ParsedDocument, chunker: Chunker) -> list[ChunkText]:
    """Cut a document, in order; a chunk whose text came before is dropped."""
    chunks: list[ChunkText] = []
    seen: set[str] = set()
    for cut in chunker.cut(document.blocks):
        text = cut.text
        if text in seen:
            continue
        seen.add(text)
        chunks.append(
            ChunkText(
                text=text,
                kind=cut.kind,
                section=cut.run.section,
                page=cut.page,
                ordinal=len(chunks),
            )
        )
    return chunks
