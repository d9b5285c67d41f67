"""A count of the catalogue's commits in a file of its own: it tells that the newest are gone.

SQLite drops what a damaged log holds without a word, and a file that was put back looks whole. The
catalogue counts its commits too (`meta`); when this file has seen more of them, rows are missing.
"""

from __future__ import annotations

import os
import re
import zlib
from contextlib import suppress
from pathlib import Path

from stores.folder import sync_folder

NAME = "catalogue.commits"
KEY = "commits"  # of the same count in the table `meta`
# Two records are written in turn, each in a page of its own: a torn write leaves the other one.
SLOT = 4096
RECORD = re.compile(rb"([0-9]{19}) ([0-9a-f]{8})\n")
_BYTES = 29


class Witness:
    """Keep the count of one data directory; several processes may note what they committed."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._handle = -1

    @property
    def is_open(self) -> bool:
        """Tell whether commits are counted: only then may the catalogue count them."""
        return self._handle >= 0

    def read(self) -> int | None:
        """Return the highest count, None without a file or a valid record."""
        if not self.is_open:
            with suppress(OSError):
                self._handle = os.open(self._path, os.O_RDWR)
        if not self.is_open:
            return None
        slots = (os.pread(self._handle, _BYTES, place) for place in (0, SLOT))
        found = [count for slot in slots if (count := _count(slot)) is not None]
        return max(found, default=None)

    def is_there(self) -> bool:
        """Tell whether the file that is open still has its name."""
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._handle))
        except OSError:
            return False

    def begin(self) -> None:
        """Make the file, durably, before the first commit is counted."""
        with suppress(OSError):  # where it cannot be made, nothing is counted
            if not self.is_open:
                self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            os.pwrite(self._handle, _record(0), 0)
            os.fsync(self._handle)
            sync_folder(self._path.parent)

    def note(self, count: int) -> None:
        """Keep the number of a commit that is on the disk; one that cannot be kept is no harm."""
        with suppress(OSError):
            os.pwrite(self._handle, _record(count), SLOT * (count % 2))
            os.fdatasync(self._handle)

    def close(self) -> None:
        """Let go of the file."""
        if self.is_open:
            os.close(self._handle)
            self._handle = -1


def _record(count: int) -> bytes:
    text = b"%019d" % count
    return text + b" %08x\n" % zlib.crc32(text)


def _count(record: bytes) -> int | None:
    match = RECORD.fullmatch(record)
    return int(match[1]) if match and int(match[2], 16) == zlib.crc32(match[1]) else None
