"""Parse files in processes that can be killed without losing the run."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from core.errors import DocumentError
from ingest.loaders.formats import source_files
from ingest.loaders.limits import MB, LoadLimits
from ingest.sandbox.confine import ROOT, SCRATCH
from ingest.types import Loaded, LoadFailure, ParsedDocument

_START_S = 30.0  # chosen, not measured
_CHUNK = 1 << 16  # bytes of the word that it is ready; chosen, not measured
_READY = b"ready"


class ChildEndedError(Exception):
    """The process ended before it had answered."""


class ParserProcess:
    """One parser process with a private folder for temporary files, removed at its end."""

    def __init__(self, module: str = "ingest.sandbox.worker", **variables: str) -> None:
        self.served = 0
        self._ready = False
        self._buffer = bytearray()
        self._seen = 0
        self._scratch = tempfile.mkdtemp(prefix=SCRATCH)
        self._process = subprocess.Popen(
            [sys.executable, "-B", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            env=_environment(self._scratch) | variables,
            # Ctrl-C is the parent's to handle.
            start_new_session=True,
        )
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Tell whether the process runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill the process; a waiting reader notices that it has ended."""
        self._process.kill()

    def close(self) -> None:
        """Kill the process, and remove what it wrote."""
        self._selector.close()
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)  # with what it has started
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def send(self, job: dict[str, Any]) -> None:
        """Give it a job; raise ChildEndedError when it is no more, DocumentError when it never was.

        Importing is not the file's time: the process is waited for first.
        """
        assert self._process.stdin is not None
        if not self._ready:
            try:
                self._ready = self.line(_START_S, _CHUNK) == _READY
            except (TimeoutError, ChildEndedError):
                pass
            if not self._ready:
                raise DocumentError("the parser process does not start; see `carrel doctor`")
        try:
            self._process.stdin.write(json.dumps(job).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise ChildEndedError from error
        self.served += 1

    def line(self, seconds: float, most: int) -> bytearray:
        """Return the next line without its end.

        Raises TimeoutError after `seconds`, ChildEndedError at the end of the stream or for a line
        of more than `most` bytes.
        """
        deadline = time.monotonic() + seconds
        while (end := self._buffer.find(b"\n", self._seen)) < 0:
            self._seen = len(self._buffer)
            if self._seen > most:
                raise ChildEndedError
            if not self._selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError
            chunk = os.read(self._output, 1 << 20)
            if not chunk:
                raise ChildEndedError
            self._buffer += chunk
        self._seen = 0
        found = self._buffer[:end]
        del self._buffer[: end + 1]
        return found

    def death(self) -> str:
        """Say how the process ended, in words for a person."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)
        code = self._process.returncode
        if code == -getattr(signal, "SIGXCPU", 0):
            return "parsing took more processor time than timeout_s allows; simplify the file"
        how = f"signal {-code}" if code is not None and code < 0 else f"exit {code}"
        return f"the parser crashed on this file ({how}); convert it to another format"

    @property
    def _output(self) -> int:
        assert self._process.stdout is not None
        return self._process.stdout.fileno()


def _environment(scratch: str) -> dict[str, str]:
    """No keys or proxies: the process reads hostile files and needs neither."""
    kept = (
        "PATH",
        "LANG",
        "LC_ALL",
        "LD_LIBRARY_PATH",
        "SYSTEMROOT",
        "VIRTUAL_ENV",
        "TESSDATA_PREFIX",
    )
    given = {name: os.environ[name] for name in kept if name in os.environ}
    # A thread pool's stacks would be counted as memory of the file.
    return given | {"TMPDIR": scratch, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


# One document is JSON of at most max_characters; escapes, fields and metadata take some more.
_BYTES_PER_CHARACTER = 6
# All of a file's documents: fields are written twice, and short records have long names.
_BYTES_PER_BYTE = 64  # chosen, not measured


class LostError(Exception):
    """Say why the process is of no more use, in words for a person."""


class ParsedFile:
    """Ask processes for the documents of a file.

    `member` is the member of an archive that is being read, `after` the last one over which a
    process died, `begun` whether the process at work has sent anything.
    """

    def __init__(self, path: Path, relative: str, limits: LoadLimits) -> None:
        self.member = ""
        self.after = ""
        self.begun = False
        self._limits = limits
        self._path, self._relative = path, relative
        self._longest = limits.max_characters * _BYTES_PER_CHARACTER + MB
        self._size = sum(file.stat().st_size for file in source_files(path))
        self._most = self._longest + _BYTES_PER_BYTE * (self._size + limits.zip_total_mb * MB)
        self._received = 0
        self._waited = 0.0
        self._entered = 0.0
        self._pictured: set[str] = set()  # members with pictures that OCR has begun to read

    def answers(self, child: ParserProcess) -> Generator[Loaded, None, bool]:
        """Yield documents and failures; return whether the process may take another file.

        Raises LostError when the process died, DocumentError when the file took too much.
        """
        self.begun, self.member = False, ""
        try:
            child.send(self._job())
            while (line := self._line(child)).startswith((b"{", b"A", b"O")):
                self.begun = True
                if line == b"O":
                    self._pictured.add(self.member)
                    continue
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

    def _line(self, child: ParserProcess) -> bytearray:
        """Wait for a line: that time counts as the file's, not the caller's work in between."""
        started = time.monotonic()
        left = self._allowed_seconds() - self._waited
        of_member = self._of_one(self.member) - (self._waited - self._entered)
        try:
            line = child.line(min(left, of_member) if self.member else left, self._longest + MB)
        except TimeoutError:
            self._waited += time.monotonic() - started
            if self.member and self._waited < self._allowed_seconds():
                raise LostError(self._too_long(self._of_one(self.member))) from None
            raise DocumentError(self._too_long(self._allowed_seconds())) from None
        self._waited += time.monotonic() - started
        self._received += len(line)
        if self._received > self._most:
            raise DocumentError("the file gives more text than any file of its size could hold")
        return line

    def _too_long(self, seconds: float) -> str:
        return (
            f"parsing took longer than {seconds:g} s (ingest.parse_timeout_s); simplify the file or"
            " raise it"
        )

    def _allowed_seconds(self) -> float:
        """Return the seconds of a file: the limit once for each max_file_mb of it or of its output.

        An archive has as much as if it were as large as one may be.
        """
        inside = self._limits.zip_total_mb * MB if self.member else 0
        work = int(max(self._size, self._received, inside))
        steps = 1 + work // int(self._limits.max_file_mb * MB)
        return self._limits.timeout_s * steps + self._limits.ocr_timeout_s * len(self._pictured)

    def _of_one(self, member: str) -> float:
        """Return the seconds of a member, or of the file; its pictures have time of their own."""
        return self._limits.timeout_s + self._limits.ocr_timeout_s * (member in self._pictured)


class Sandbox:
    """Keep warm parser processes for many files; a killed or crashed one is replaced.

    Each file that is parsed at the same time has a process of its own. One thread parses; any may
    `end` that. Use as a context manager, or call `close`.
    """

    def __init__(self) -> None:
        self._idle: list[ParserProcess] = []
        self._busy: set[ParserProcess] = set()
        self._ended = False

    def __enter__(self) -> Sandbox:
        """Start a process, which gets ready while the caller does."""
        self._idle.append(ParserProcess())
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill the processes that wait; the next file starts another."""
        while self._idle:
            self._idle.pop().close()

    def end(self) -> None:
        """Kill the busy processes as well: their results are no longer needed."""
        self._ended = True
        for child in list(self._busy):
            child.kill()

    def parse(self, path: Path, relative: str, limits: LoadLimits) -> Iterator[Loaded]:
        """Yield the results of a process for one file; raise DocumentError when it dies over it.

        A process that had served other files is not believed when it runs out of memory or crashes
        before it sent anything: a fresh one tries again. One that dies over a member of an archive
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
                if self._ended:
                    return
                if file.member and file.member != file.after:
                    yield LoadFailure(path=file.member, reason=str(lost))
                    file.after = file.member
                elif file.begun or not served:
                    raise DocumentError(str(lost)) from None
            child = ParserProcess()

    def _answers(self, file: ParsedFile, child: ParserProcess) -> Iterator[Loaded]:
        goes_on = False
        self._busy.add(child)
        try:
            goes_on = yield from file.answers(child)
        finally:
            self._busy.discard(child)
            # What is left of an interrupted answer would be read as that of the next file.
            if goes_on:
                self._idle.append(child)
            else:
                child.close()

    def _take(self) -> ParserProcess:
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                return child
            child.close()
        return ParserProcess()
