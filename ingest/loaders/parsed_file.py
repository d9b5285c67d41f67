"""One file in the hands of a parser process: what it may still take, and how it ends."""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from core.errors import DocumentError
from ingest.loaders.child import Child, ChildEndedError
from ingest.loaders.limits import LoadLimits
from ingest.types import LoadFailure, ParsedDocument

_MB = 2**20
# One document is JSON of at most max_characters; escapes, fields and metadata take some more.
_BYTES_PER_CHARACTER = 6
# All of a file's documents: fields are said twice, and short records have long names.
_BYTES_PER_BYTE = 64


class LostError(Exception):
    """Say why the process is of no more use."""

    def __init__(self, reason: str) -> None:
        """Keep the reason, in words for a person."""
        super().__init__(reason)
        self.reason = reason


class ParsedFile:
    """Ask processes for the documents of a file.

    `member` is the member of an archive that is being read, `after` the last one over which a
    process died, `begun` whether the process at work has said anything.
    """

    def __init__(self, path: Path, relative: str, limits: LoadLimits) -> None:
        """Look at the size of the file; raise OSError when it is not there."""
        self.member = ""
        self.after = ""
        self.begun = False
        self._limits = limits
        self._path, self._relative = path, relative
        self._longest = limits.max_characters * _BYTES_PER_CHARACTER + _MB
        self._size = path.stat().st_size
        self._most = self._longest + _BYTES_PER_BYTE * (self._size + limits.zip_total_mb * _MB)
        self._received = 0
        self._waited = 0.0
        self._entered = 0.0

    def answers(self, child: Child) -> Generator[ParsedDocument | LoadFailure, None, bool]:
        """Yield documents and failures; return whether the process may take another file.

        Raises LostError when the process died, DocumentError when the file took too much.
        """
        self.begun, self.member = False, ""
        try:
            child.send(self._job())
            while (line := self._line(child)).startswith((b"{", b"A")):
                self.begun = True
                if line.startswith(b"A"):
                    self.member, self._entered = json.loads(line[1:]), self._waited
                    continue
                kind = LoadFailure if line.startswith(b'{"path"') else ParsedDocument
                yield kind.model_validate_json(line)
        except ChildEndedError:
            raise LostError(child.death()) from None
        if line == b"M":
            raise LostError(
                f"parsing needs more than {self._limits.memory_mb} MB of memory (memory_mb)"
            )
        return line == b"E"

    def _job(self) -> dict[str, Any]:
        return {
            "path": str(self._path.resolve()),
            "relative": self._relative,
            "limits": self._limits.model_dump(),
            "longest": self._longest,
            "after": self.after,
        }

    def _line(self, child: Child) -> bytearray:
        """Wait for a line: only that time is the file's, not what the caller does in between."""
        started = time.monotonic()
        left = self._allowed() - self._waited
        of_member = self._limits.timeout_s - (self._waited - self._entered)
        try:
            line = child.line(min(left, of_member) if self.member else left, self._longest + _MB)
        except TimeoutError:
            self._waited += time.monotonic() - started
            if self.member and self._waited < self._allowed():
                raise LostError(self._too_long(self._limits.timeout_s)) from None
            raise DocumentError(self._too_long(self._allowed())) from None
        self._waited += time.monotonic() - started
        self._received += len(line)
        if self._received > self._most:
            raise DocumentError("the file gives more text than any file of its size could hold")
        return line

    def _too_long(self, seconds: float) -> str:
        return f"parsing took longer than {seconds:g} s (timeout_s); simplify the file or raise it"

    def _allowed(self) -> float:
        """Each further max_file_mb of the file, or of what came of it, has the time of a file.

        An archive has as much as if it were as large as one may be.
        """
        inside = self._limits.zip_total_mb * _MB if self.member else 0
        work = int(max(self._size, self._received, inside))
        return self._limits.timeout_s * (1 + work // int(self._limits.max_file_mb * _MB))
