"""What a loader hands to the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Literal, Self

from pydantic import BaseModel, Field

from core.types import FrozenModel

BlockKind = Literal["text", "code", "table", "annotation", "record"]


class Block(FrozenModel):
    """Hold one stretch of a document that is split on its own.

    `section` is the heading path ("Guide › Limits"); `page` counts from 1. An `annotation` or
    `record` block is never split; a `code` block keeps its line breaks.
    """

    text: str
    kind: BlockKind = "text"
    section: str = ""
    page: int | None = None


class ParsedDocument(BaseModel):
    """Hold one parsed document or record, before cleaning and splitting.

    `document_id` is stable across runs (a record's own id, or the path below the ingested folder);
    `source` is what a person is shown (path, plus "#id" for a record); `fields` are a record's
    queryable fields, scalars or lists of scalars; `metadata` describes it; `unseen` counts
    pieces of text that readers of the file do not see, and which are not in it, and `pictures`
    those that OCR would read, were it installed.
    """

    document_id: str
    source: str
    title: str
    format: str
    blocks: list[Block]
    is_record: bool = False
    fields: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)
    unseen: int = 0
    pictures: int = 0

    @classmethod
    def of_file(
        cls,
        relative: str,
        format_name: str,
        blocks: list[Block],
        metadata: Mapping[str, Any],
        *titles: object,
    ) -> Self:
        """Return the one document of a file: its title is the first that there is, or its stem."""
        return cls(
            document_id=relative,
            source=relative,
            title=str(next(filter(None, titles), PurePosixPath(relative).stem)),
            format=format_name,
            blocks=blocks,
            metadata=dict(metadata),
        )


class LoadFailure(BaseModel):
    """Name one file, or one record of a file, that could not be read, and why."""

    path: str
    reason: str


Loaded = ParsedDocument | LoadFailure
