"""Rows of the catalogue as ingest hands them over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# What a line of context stands before and after; signs, so that no document is found by a word.
PREVIOUS, NEXT = "← ", "→ "


@dataclass(frozen=True)
class ChunkRow:
    """Hold one chunk as it is stored; `content_hash` is of the text that is embedded.

    `context` is text of neighbouring documents: searched with the chunk, never shown as its own.
    """

    chunk_id: str
    ordinal: int
    text: str
    kind: str
    section: str
    page: int | None
    tokens: int
    content_hash: str
    context: str = ""


@dataclass(frozen=True)
class DocumentRow:
    """Hold one document as it is stored; `acl` empty means open to the whole tenant.

    `body_hash` is of all that does not depend on the name of its file.
    """

    key: str
    document_id: str
    file: str
    source: str
    title: str
    format: str
    language: str
    is_record: bool
    version: str
    updated_at: str
    content_hash: str
    metadata: dict[str, Any]
    fields: list[tuple[str, str, float | None]]
    chunks: list[ChunkRow]
    acl: frozenset[str] = field(default_factory=frozenset)
    body_hash: str = ""


@dataclass(frozen=True)
class FileRow:
    """Hold what is known of an ingested file; `failures` are its records that failed."""

    relative: str
    path: str
    fingerprint: str
    failures: list[dict[str, str]]
