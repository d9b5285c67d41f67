"""What passes through the steps of an ingest together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ingest.summary import ReadFile
from ingest.types import ParsedDocument
from ingest.vectors import Embedded
from stores.sqlite.files import JournalEntry
from stores.sqlite.rows import DocumentRow


class Parsed(NamedTuple):
    """Hold a new or changed document, its id, and text of its neighbours as `context`."""

    document: ParsedDocument
    document_id: str
    context: str
    file: ReadFile


class Relabelled(NamedTuple):
    """Hold a document of a renamed file, and the id it had."""

    row: DocumentRow
    replaced: str
    file: ReadFile


@dataclass
class Batch:
    """Hold documents of one or more files, and the files that end in it.

    `parsed` become `documents` when they are cut. `paths` are the places of their files by name,
    `aliases` what their writers call them by name,
    `replaced` the old ids of renamed ones; `files` counts those read so far, and `chunks` is about
    how many there will be.
    """

    parsed: list[Parsed] = field(default_factory=list)
    documents: list[DocumentRow] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    paths: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    finished: list[ReadFile] = field(default_factory=list)
    embedded: Embedded = field(default_factory=lambda: Embedded({}, {}))
    files: int = 0
    chunks: int = 0

    def entries(self) -> list[JournalEntry]:
        """Return what the journal says of its documents."""
        waiting = [JournalEntry(one.document_id, one.file.relative) for one in self.parsed]
        return waiting + [
            JournalEntry(d.document_id, d.file, len(d.chunks)) for d in self.documents
        ]

    def full(self, limit: int) -> bool:
        """Tell whether it holds so many chunks or ends of files."""
        return self.chunks >= limit or len(self.finished) >= limit
