"""The parent's end of a parser process: start it, read its lines, end it, clean up after it."""

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
from contextlib import suppress
from pathlib import Path
from typing import Any

from core.errors import DocumentError
from ingest.loaders.confine import SCRATCH

_ROOT = Path(__file__).resolve().parents[2]
_START_S = 30.0
_CHUNK = 1 << 16
_PIPE = 1 << 20
_READY = b"ready"


class ChildEndedError(Exception):
    """The process ended before it had answered."""


class Child:
    """One parser process with a private folder for temporary files, removed at its end."""

    def __init__(self) -> None:
        """Start the process; it gets ready while the caller does something else."""
        self.served = 0
        self._ready = False
        self._buffer = bytearray()
        self._seen = 0
        self._scratch = tempfile.mkdtemp(prefix=SCRATCH)
        self._process = subprocess.Popen(
            [sys.executable, "-B", "-m", "ingest.loaders.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=_ROOT,
            env=_environment(self._scratch),
            # Ctrl-C is the parent's to handle.
            start_new_session=True,
        )
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)
        _widen(self._output)

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Tell whether the process runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """Kill the process, and remove what it wrote."""
        self._selector.close()
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
            chunk = os.read(self._output, _PIPE)
            if not chunk:
                raise ChildEndedError
            self._buffer += chunk
        self._seen = 0
        if end + 1 < len(self._buffer):
            found = self._buffer[:end]
            del self._buffer[: end + 1]
        else:  # a long line is not copied
            found, self._buffer = self._buffer, bytearray()
            del found[end:]
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
    kept = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "VIRTUAL_ENV")
    given = {name: os.environ[name] for name in kept if name in os.environ}
    # A thread pool's stacks would be counted as memory of the file.
    return given | {"TMPDIR": scratch, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def _widen(pipe: int) -> None:
    """Let the process parse ahead of a parent that is busy with what it has."""
    try:
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)
    except (ImportError, AttributeError, OSError):
        return
