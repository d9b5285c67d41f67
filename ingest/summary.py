"""What an ingest did, and what became of each of its files."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from ingest.discover import SourceFile, size_of
from ingest.loaders.tesseract import HINT
from ingest.types import LoadFailure
from stores.sqlite.files import LeftOutRow


@dataclass
class Summary:
    """Say what an ingest did; `documents` and `chunks` are what the files amount to now.

    `others` is how many more files the folders hold, of formats that are not read.
    `notes` say what was done otherwise than the settings ask; `unseen` counts by file the pieces of
    text that its readers do not see, and that were not read, `pictures` those that lack OCR.
    """

    files: int = 0
    others: int = 0
    indexed: int = 0
    unchanged: int = 0
    renamed: int = 0
    removed: int = 0
    failed: list[LoadFailure] = field(default_factory=list)
    left_out: list[LoadFailure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unseen: Counter[str] = field(default_factory=Counter)
    pictures: Counter[str] = field(default_factory=Counter)
    documents: int = 0
    chunks: int = 0
    seconds: float = 0.0

    def note_unseen(self) -> list[str]:
        """Say which text was not read: its readers do not see it, or it is in pictures."""
        notes = []
        for counts, what, why in (
            (self.unseen, "pieces of text", "are hidden from its readers and were not read"),
            (self.pictures, "pictures", f"were not read; {HINT}"),
        ):
            if counts:
                named = f"in {len(counts)} files, the first '{next(iter(counts))}'"
                notes.append(f"{counts.total()} {what} {named}, {why}")
        return notes

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


class Size(NamedTuple):
    """Hold how many chunks there are, and the characters of all of them."""

    chunks: int
    text: int


class Tally:
    """Count files, documents and chunks; each number is written by one thread alone."""

    def __init__(self) -> None:
        self.files = self.files_done = 0
        self.documents = 0
        self.chunks = self.chunks_done = 0  # found so far, and those with vectors
        self.reading = self.embedding = ""  # names of files
        self._began = time.monotonic()
        self._started = 0.0  # when there was something to embed
        self._bytes = self._bytes_read = 0
        self._text = self._text_done = 0  # characters of those chunks, which tell the time
        self._text_made = 0  # of those that had no vectors before

    @property
    def elapsed(self) -> float:
        """Return the seconds since the beginning."""
        return time.monotonic() - self._began

    @property
    def share(self) -> float:
        """Return the share of the work that is done, as far as the files that are read tell."""
        if not self._text or not self._bytes:
            return 0.0
        return min(1.0, self._text_done / self._text * self._bytes_read / self._bytes)

    @property
    def at_least(self) -> bool:
        """Tell whether `remaining` is for what was read of the first file alone."""
        return not self._bytes_read

    @property
    def remaining(self) -> float | None:
        """Return about how many seconds are left, None while that is unknown."""
        if not self._text_made:
            return None
        whole = self._text if self.at_least else self._text * self._bytes / self._bytes_read
        pace = (time.monotonic() - self._started) / self._text_made
        return pace * max(0.0, whole - self._text_done)

    @property
    def name(self) -> str:
        """Return the file at work: the one that is embedded, else the one that is read."""
        return self.embedding if self.chunks_done < self.chunks else self.reading

    def read(self, sources: Sequence[SourceFile]) -> Iterable[SourceFile]:
        """Yield the files, each when the one before it has been read."""
        sizes = [size_of(one.path) for one in sources]
        self.files, self._bytes = len(sources), sum(sizes)
        return self._each(sources, sizes)

    def _each(self, sources: Sequence[SourceFile], sizes: Sequence[int]) -> Iterator[SourceFile]:
        for source, size in zip(sources, sizes, strict=True):
            self.reading = source.relative
            yield source
            self._bytes_read += size

    def cut(self, size: Size) -> None:
        """Add chunks that wait for their vectors."""
        self._started = self._started or time.monotonic()
        self._text += size.text
        self.chunks += size.chunks

    def known(self, size: Size) -> None:
        """Add chunks that had their vectors before."""
        self._text_done += size.text
        self.chunks_done += size.chunks

    def embedded(self, size: Size) -> None:
        """Add chunks that have got their vectors."""
        self.known(size)
        self._text_made += size.text

    @contextmanager
    def batch(self, size: Size) -> Iterator[None]:
        """Count a whole batch at the end of the block: some of its texts may be equal."""
        text, chunks = self._text_done + size.text, self.chunks_done + size.chunks
        yield
        self._text_done, self.chunks_done = text, chunks
