"""The process of `sandbox` that parses: read jobs as JSON lines, answer with a line per document.

A line is the JSON of a document or of a failure, or begins with a letter: A the name of the member
of an archive that comes next, O that pictures are read from now on, M out of memory, E the end of
the file (and "E0" of the process too).
"""

from __future__ import annotations

import json
import math
import os
import re
import resource
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from ingest.loaders import archive, ocr
from ingest.loaders.formats import FORMATS, format_of
from ingest.loaders.limits import MB, LoadLimits
from ingest.loaders.parse import parse
from ingest.sandbox.confine import SCRATCH, Confinement
from ingest.types import Loaded, LoadFailure


def main() -> None:
    """Answer jobs until the input ends."""
    try:
        _serve()
    except BrokenPipeError:
        pass  # nobody waits for the rest
    scratch = Path(tempfile.gettempdir())
    if scratch.name.startswith(SCRATCH):  # and not the folder of everybody
        # The parent does it too, unless it was killed.
        shutil.rmtree(scratch, ignore_errors=True)
    os._exit(0)  # what is left unsaid is for nobody


def _serve() -> None:
    answers = private_stdout()
    peak = _Peak()
    confinement = Confinement()
    confinement.enter()
    answers.write(b"ready\n")
    answers.flush()
    for line in sys.stdin.buffer:
        job = json.loads(line)
        confinement.file = os.path.realpath(job["path"])
        if not _Job(job, answers, peak).run():
            return


def private_stdout() -> BinaryIO:
    """Keep stdout for answers: native libraries print what they like to descriptor 1."""
    answers = os.fdopen(os.dup(1), "wb", buffering=1 << 16)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return answers


class _Job:
    """One file: its limits, and its answers as they come."""

    def __init__(self, job: dict[str, Any], answers: BinaryIO, peak: _Peak) -> None:
        self._peak = peak
        self._limits = LoadLimits.model_validate(job["limits"])
        self._path, self._relative = Path(job["path"]), str(job["relative"])
        self._longest = int(job["longest"])
        self._step = int(self._limits.max_file_mb * MB)
        self._after = str(job["after"])
        self._skips = bool(self._after)
        self._sent = 0
        self._answers = answers

    def run(self) -> bool:
        """Answer the job; return whether the process may take another."""
        size = 0
        with suppress(OSError):
            size = self._path.stat().st_size
        steps = 1 + size // self._step
        _limit(self._limits, steps, self._largest_written())
        try:
            archive.watch(self._enter)
            ocr.watch(self._begin_ocr)
            for item in parse(self._path, self._relative, self._limits):
                if self._skips:
                    continue
                before = self._sent // self._step
                self._send(item)
                if self._sent // self._step > before:  # it works, so that it may go on
                    _limit_time(self._limits.timeout_s)
        except MemoryError:
            # What is left of the heap is in pieces: the next file gets a fresh process.
            self._write(b"M")
            return False
        goes_on = self._peak.mb() < self._limits.memory_mb / 2
        self._write(b"E" if goes_on else b"E0")
        return goes_on

    def _enter(self, member: str) -> bool:
        """Name the member that comes next; those up to one that killed a process are not read."""
        if self._skips:
            self._skips = member != self._after
            return self._after.startswith(f"{member}/")
        self._write(b"A" + json.dumps(member).encode())
        _limit_time(self._limits.timeout_s)
        return True

    def _begin_ocr(self) -> None:
        """Say that pictures come next, which take more time than text."""
        self._write(b"O")
        _limit_time(self._limits.ocr_timeout_s * (os.cpu_count() or 1))

    def _send(self, item: Loaded) -> None:
        line = _encode(item)
        if len(line) > self._longest:
            assert not isinstance(item, LoadFailure)
            reason = (
                f"its text and fields take {len(line) / MB:.0f} MB; the limit is"
                f" {self._limits.max_characters} characters (ingest.max_characters)"
            )
            line = _encode(LoadFailure(path=item.source, reason=reason))
        self._write(line)

    def _write(self, line: bytes) -> None:
        self._answers.write(line + b"\n")
        # One by one: what is read must not wait for what is parsed.
        self._answers.flush()
        self._sent += len(line)

    def _largest_written(self) -> int:
        """Members of archives are put into files for loaders that want one; nothing else is."""
        chosen = FORMATS.get(format_of(self._path.name) or "")
        archive = chosen is not None and chosen.writes
        return int(self._limits.zip_total_mb * MB) if archive else 0


def _encode(item: Loaded) -> bytes:
    try:
        return item.model_dump_json().encode()
    except ValueError:  # half a surrogate pair, as JSON may hold and UTF-8 may not
        cleaned = type(item).model_validate(_storable(item.model_dump(mode="python")))
        return cleaned.model_dump_json().encode()


def _storable(value: Any) -> Any:  # noqa: ANN401 (fields hold anything)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list | tuple) else value


def limit_process(limits: LoadLimits) -> None:
    """Bound what a process may take that reads one file, pictures of text too, and writes none."""
    _limit(limits, 1, 0)
    _limit_time(limits.ocr_timeout_s)


def _limit(limits: LoadLimits, steps: int, written: int) -> None:
    """Bound memory, writing, and processor time from now on; the parent watches the clock."""
    for kind, value in (
        (resource.RLIMIT_CPU, _seconds(steps * limits.timeout_s)),
        (resource.RLIMIT_AS, limits.memory_mb * MB),
        (resource.RLIMIT_FSIZE, written),
    ):
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (value, resource.getrlimit(kind)[1]))


def _limit_time(more_s: float) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (max(soft, _seconds(more_s)), hard))


def _seconds(more_s: float) -> int:
    """Return the processor time that this process has when it gets so much more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return math.ceil(used.ru_utime + used.ru_stime + more_s) + 1


class _Peak:
    """Tell how much memory this process has used at most.

    On Linux getrusage counts what the parent had used before it started this process.
    """

    def __init__(self) -> None:
        try:
            self._status: BinaryIO | None = Path("/proc/self/status").open("rb", buffering=0)
        except OSError:
            self._status = None

    def mb(self) -> float:
        if self._status is None:
            return _peak_of_usage()
        self._status.seek(0)
        found = re.search(rb"VmHWM:\s+(\d+) kB", self._status.read())
        return int(found[1]) / 1024 if found else _peak_of_usage()


def _peak_of_usage() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (MB if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
