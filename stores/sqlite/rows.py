"""Rows of the catalogue as ingest hands them over."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stores.sqlite.catalogue import Collection

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

    `body_hash` is of all that does not depend on the name of its file. `alias` is what its file
    calls it, "" where that is its id.
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
    alias: str = ""


@dataclass(frozen=True)
class FileRow:
    """Hold what is known of an ingested file; `failures` are its records that failed.

    `alias` is what its writer calls it, "" where that is its name here.
    """

    relative: str
    path: str
    fingerprint: str
    failures: list[dict[str, str]]
    alias: str = ""


def digest(*parts: object, length: int = 32) -> str:
    """Hash parts into hexadecimal characters; the parts cannot run into each other."""
    encoded = json.dumps(parts, ensure_ascii=False, sort_keys=True, default=str)
    return hashlib.sha256(encoded.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def document_key(collection: Collection, document_id: str) -> str:
    """Return the name of a document among all collections of all tenants."""
    return digest(*id_parts(collection), document_id)


def id_parts(collection: Collection) -> list[str]:
    """Return what all ids of a collection are made with."""
    return [collection.secret, collection.tenant, collection.name]
