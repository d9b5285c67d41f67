"""What an ingest did, and what became of each of its files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ingest.discover import SourceFile
from ingest.types import LoadFailure
from stores.left_out import LeftOutRow


@dataclass
class Summary:
    """Say what an ingest did; `documents` and `chunks` are what the files amount to now.

    `notes` say what was done otherwise than the settings ask.
    """

    files: int = 0
    indexed: int = 0
    unchanged: int = 0
    renamed: int = 0
    removed: int = 0
    failed: list[LoadFailure] = field(default_factory=list)
    left_out: list[LoadFailure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    documents: int = 0
    chunks: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Tell whether anything was indexed or already there."""
        return bool(self.indexed or self.unchanged or self.renamed)


@dataclass
class ReadFile:
    """Hold a file while it is read: what became of its documents.

    `path` is where it really is; `relative` is its name in the collection, `alias` what its writer
    calls it, "" where that is the same. `previous` is the name it had before it was renamed; an
    `unchanged` one has another place only. `unsplit` are documents without chunks. `kept_out` says
    that it has a document which was forgotten for good.
    """

    source: SourceFile
    path: str
    fingerprint: str
    relative: str
    alias: str = ""
    previous: str = ""
    unchanged: bool = False
    kept_out: bool = False
    documents: int = 0
    failures: list[LoadFailure] = field(default_factory=list)
    unsplit: list[LoadFailure] = field(default_factory=list)

    @property
    def lost(self) -> list[LoadFailure]:
        """Return all that could not be taken of it."""
        return self.failures + self.unsplit

    left_out: list[LeftOutRow] = field(default_factory=list)

    def count(self, summary: Summary) -> None:
        """Add what became of this file to the summary."""
        summary.failed += self.lost
        if self.previous and self.documents:
            summary.renamed += 1
        elif self.documents:
            summary.indexed += 1


def left_out_of(rows: Iterable[LeftOutRow]) -> list[LoadFailure]:
    """Return what was left out as a summary lists it."""
    return [LoadFailure(path=row.source, reason=row.reason) for row in rows]
