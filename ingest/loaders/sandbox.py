"""Parse files in processes that can be killed without losing the run."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from core.errors import DocumentError
from ingest.loaders.child import Child
from ingest.loaders.limits import LoadLimits
from ingest.loaders.parsed_file import LostError, ParsedFile
from ingest.types import LoadFailure, ParsedDocument


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

        A process that had served other files is not believed when it runs out of memory or crashes
        before it said anything: a fresh one tries again. One that dies over a member of an archive
        costs that member: a fresh one goes on with the next.
        """
        file = ParsedFile(path, relative, limits)
        child = self._take()
        while True:
            served = child.served
            try:
                yield from self._answers(file, child)
                return
            except LostError as lost:
                if file.member and file.member != file.after:
                    yield LoadFailure(path=file.member, reason=lost.reason)
                    file.after = file.member
                elif file.begun or not served:
                    raise DocumentError(lost.reason) from None
            child = Child()

    def _answers(self, file: ParsedFile, child: Child) -> Iterator[ParsedDocument | LoadFailure]:
        goes_on = False
        try:
            goes_on = yield from file.answers(child)
        finally:
            # What is left of an interrupted answer would be read as that of the next file.
            if goes_on:
                with self._lock:
                    self._idle.append(child)
            else:
                child.close()

    def _take(self) -> Child:
        with self._lock:
            child = self._idle.pop() if self._idle else None
        if child is not None and not child.alive:
            child.close()
            child = None
        return child or Child()


_shared: dict[int, Sandbox] = {}


def shared() -> Sandbox:
    """Return this process's own sandbox, for callers that read a file now and then."""
    box = _shared.get(os.getpid())
    if box is None:
        box = _shared[os.getpid()] = Sandbox()
        atexit.register(box.close)
    return box
