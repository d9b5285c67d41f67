"""Parse files in processes that can be killed without losing the run."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
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


class Sandbox:
    """Keep warm parser processes for many files; a killed or crashed one is replaced.

    Each thread that parses at the same time has a process of its own. Use as a context manager, or
    call `close`.
    """

    def __init__(self) -> None:
        """Start nothing yet."""
        self._idle: list[Child] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Sandbox:
        """Start a process, which gets ready while the caller does."""
        self.warm()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the processes."""
        self.close()

    def warm(self) -> None:
        """Start a process unless one waits already."""
        with self._lock:
            if not self._idle:
                self._idle.append(Child())

    def close(self) -> None:
        """Kill the processes that wait; the next file starts another."""
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.close()

    def parse(
        self, path: Path, relative: str, limits: LoadLimits
    ) -> Iterator[ParsedDocument | LoadFailure]:
        """Yield what a process makes of one file; raise DocumentError when it dies over it.

        A process that had served other files is not believed when it runs out of memory or crashes:
        as long as nothing was yielded, a fresh one tries again.
        """
        child = self._take()
        if child.served:
            file = _File(child, path, relative, limits)
            try:
                yield from self._served(file)
                return
            except ChildEndedError:
                if file.given:
                    raise DocumentError(file.death) from None
            child = Child()
        file = _File(child, path, relative, limits)
        try:
            yield from self._served(file)
        except ChildEndedError:
            raise DocumentError(file.death) from None

    def _served(self, file: _File) -> Iterator[ParsedDocument | LoadFailure]:
        try:
            yield from file.answers()
        finally:
            # What is left of an interrupted answer would be read as that of the next file.
            if file.goes_on:
                with self._lock:
                    self._idle.append(file.child)
            else:
                file.child.close()

    def _take(self) -> Child:
        with self._lock:
            child = self._idle.pop() if self._idle else None
        if child is not None and not child.alive:
            child.close()
            child = None
        return child or Child()


class _File:
    """One file in the hands of a process: what it may still take, and how it ended."""

    def __init__(self, child: Child, path: Path, relative: str, limits: LoadLimits) -> None:
        self.child = child
        self.given = False
        self.goes_on = False
        self.death = ""
        self._limits = limits
        self._longest = limits.max_characters * _BYTES_PER_CHARACTER + _MB
        size = path.stat().st_size
        self._most = self._longest + _BYTES_PER_BYTE * (size + limits.zip_total_mb * _MB)
        self._size = size
        self._received = 0
        self._waited = 0.0
        self._job: dict[str, Any] = {
            "path": str(path.resolve()),
            "relative": relative,
            "limits": limits.model_dump(),
            "longest": self._longest,
        }

    def answers(self) -> Iterator[ParsedDocument | LoadFailure]:
        """Yield documents and failures; raise DocumentError or ChildEndedError."""
        try:
            self.child.send(self._job)
            while (line := self._line())[:1] in (b"D", b"F"):
                self.given = True
                kind = ParsedDocument if line[:1] == b"D" else LoadFailure
                yield kind.model_validate_json(line[1:])
        except ChildEndedError:
            self.death = self.child.death()
            raise
        if line == b"M":
            self.death = (
                f"parsing needs more than {self._limits.memory_mb} MB of memory (memory_mb)"
            )
            raise ChildEndedError
        self.goes_on = line == b"E"

    def _line(self) -> bytes:
        """Wait for a line: only that time is the file's, not what the caller does in between."""
        started = time.monotonic()
        try:
            line = self.child.line(self._allowed() - self._waited, self._longest + _MB)
        except TimeoutError:
            raise DocumentError(
                f"parsing took longer than {self._allowed():g} s (timeout_s); simplify the file or"
                " raise it"
            ) from None
        self._waited += time.monotonic() - started
        self._received += len(line)
        if self._received > self._most:
            raise DocumentError("the file gives more text than any file of its size could hold")
        return line

    def _allowed(self) -> float:
        """Each further max_file_mb of the file, or of what came of it, has the time of a file."""
        work = max(self._size, self._received)
        return self._limits.timeout_s * (1 + work // int(self._limits.max_file_mb * _MB))


_shared: dict[int, Sandbox] = {}


def shared() -> Sandbox:
    """Return this process's own sandbox, for callers that read a file now and then."""
    box = _shared.get(os.getpid())
    if box is None:
        box = _shared[os.getpid()] = Sandbox()
        atexit.register(box.close)
    return box
