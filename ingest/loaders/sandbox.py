"""Parse risky formats in a child process that can be killed without losing the run."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from core.errors import DocumentError
from ingest.loaders.limits import LoadLimits
from ingest.types import LoadFailure, ParsedDocument

_ROOT = Path(__file__).resolve().parents[2]
_START_S = 30.0
# Answers are JSON of at most max_characters; escapes and metadata may take some more.
_MAX_ANSWER_BYTES_PER_CHARACTER = 16
_CHUNK = 1 << 16


class Sandbox:
    """Keep one worker process for many files; a killed or crashed one is replaced.

    Threads take turns. Use as a context manager, or call `close`.
    """

    def __init__(self) -> None:
        """Start nothing yet: the worker starts with the first file."""
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Sandbox:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the worker."""
        self.close()

    def close(self) -> None:
        """Kill the worker if there is one; the next file starts another."""
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def parse(
        self, path: Path, relative: str, limits: LoadLimits
    ) -> Iterator[ParsedDocument | LoadFailure]:
        """Yield what the worker makes of one file; raise DocumentError when it dies over it."""
        job = {"path": str(path.resolve()), "relative": relative, "limits": limits.model_dump()}
        with self._lock:
            try:
                answer = self._ask(job, limits)
            except BaseException:  # an interrupted answer would be read as that of the next file
                self.close()
                raise
            if answer.get("last"):
                self.close()
        for item in answer["items"]:
            is_failure = "reason" in item
            yield (LoadFailure if is_failure else ParsedDocument).model_validate(item)

    def _ask(self, job: dict[str, Any], limits: LoadLimits) -> dict[str, Any]:
        child = self._running()
        assert child.stdin is not None and child.stdout is not None
        try:
            child.stdin.write(json.dumps(job).encode() + b"\n")
            child.stdin.flush()
        except OSError as error:
            raise DocumentError("the parser process ended; ingest the file again") from error
        most = limits.max_characters * _MAX_ANSWER_BYTES_PER_CHARACTER + (1 << 20)
        line = _read_line(child, time.monotonic() + limits.timeout_s, most)
        if line is None:
            raise DocumentError(
                f"parsing took longer than {limits.timeout_s:g} s (timeout_s); simplify the file or"
                " raise it"
            )
        if not line.endswith(b"\n"):
            raise DocumentError(_death(child))
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is not None and self._child.poll() is not None:
            self.close()
        if self._child is None:
            self._child = _start()
        return self._child


def _start() -> subprocess.Popen[bytes]:
    kept = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "VIRTUAL_ENV")
    child = subprocess.Popen(
        [sys.executable, "-m", "ingest.loaders.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=_ROOT,
        # No keys or proxies: the worker reads hostile files and needs neither.
        env={name: os.environ[name] for name in kept if name in os.environ},
        # Ctrl-C is the parent's to handle.
        start_new_session=True,
    )
    # Importing is not the file's time.
    if _read_line(child, time.monotonic() + _START_S, _CHUNK) != b"ready\n":
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
        raise DocumentError("the parser process does not start; see `carrel doctor`")
    return child


def _read_line(child: subprocess.Popen[bytes], deadline: float, most: int) -> bytes | None:
    """Return a line, what came before the end of the stream, or None after the deadline."""
    assert child.stdout is not None
    parts: list[bytes] = []
    size = 0
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while size <= most:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return None
            chunk = os.read(child.stdout.fileno(), _CHUNK)
            parts.append(chunk)
            size += len(chunk)
            if not chunk or chunk.endswith(b"\n"):
                break
    return b"".join(parts)


def _death(child: subprocess.Popen[bytes]) -> str:
    with suppress(subprocess.TimeoutExpired):
        child.wait(timeout=1)
    code = child.returncode
    how = f"signal {-code}" if code is not None and code < 0 else f"exit {code}"
    return f"the parser crashed on this file ({how}); convert it to another format"
