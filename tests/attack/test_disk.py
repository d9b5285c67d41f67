"""A disk that is full, fails or may not be written ends a command in one line and loses nothing.

Small versions of `benchmarks/attack_disk.py`, which is run by hand.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import ROOT, Carrel

from core.errors import DiskFullError, disk_error
from stores.sqlite.database import damaged


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, as `ulimit -f` does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_limit_of_file_sizes_ends_commands_in_one_line(
    carrel: Carrel, data: Path, tmp_path: Path
) -> None:
    ingest = ("ingest", tmp_path / "more.txt", "--set", "storage.min_free_mb=0")
    (tmp_path / "more.txt").write_text("A hare is 60 cm long.\n")
    for command in (ingest, ("backup", tmp_path / "b"), ("forget", "n1", "--yes")):
        with largest_file(200_000):
            done = carrel(*command, data=data)
        if done.code:
            done.failed(4)
            assert "is damaged and" not in done.err and "move it away" not in done.err
    assert not (tmp_path / "b.new").exists()
    if carrel("forget", data=data).code:  # nothing was begun
        assert carrel("forget", "n1", "--yes", data=data).code == 0
    assert carrel(*ingest, data=data).code == 0
    assert carrel("doctor", data=data).code == 0
    assert "60 cm" in carrel("search", "hare", data=data).out


def test_errors_of_a_disk_are_told_apart(tmp_path: Path) -> None:
    for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        assert isinstance(disk_error(OSError(code, os.strerror(code), "a")), DiskFullError)
    assert "the disk fails: a (" in str(disk_error(OSError(errno.EIO, "Input/output error", "a")))
    assert disk_error(OSError(errno.ENOENT, "no such file")) is None
    assert isinstance(damaged(tmp_path, sqlite3.OperationalError("database or disk is full")),
                      DiskFullError)  # fmt: skip
    failing = str(damaged(tmp_path, sqlite3.OperationalError("disk I/O error")))
    assert "the disk fails" in failing and "move it away" not in failing


def test_a_schema_that_is_no_text_is_a_damaged_catalogue(carrel: Carrel, data: Path) -> None:
    catalogue = data / "catalogue.sqlite3"
    content = catalogue.read_bytes()
    flipped = content.replace(
        b"WITHOUT ROWID", b"WITHOUT ROW\xc9D", 1
    )  # one bit, and SQLite quotes it
    assert flipped != content
    catalogue.write_bytes(flipped)
    for command in (("search", "hare"), ("doctor",), ("keys", "list")):
        carrel(*command, data=data).failed(4, "the catalogue is damaged")


@pytest.mark.skipif(
    shutil.which("gcc") is None or not sys.platform.startswith("linux"),
    reason="the library that makes writes fail is compiled with gcc",
)
def test_the_fault_of_a_write_loses_nothing() -> None:
    command = [sys.executable, "-m", "benchmarks.attack_disk", "--parts", "nth", "--quick"]
    done = subprocess.run(
        [*command, "--stride", "13", "--only", "keys create"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout
