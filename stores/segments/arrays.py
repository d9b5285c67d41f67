"""Arrays as raw files: written once, durably, and memory-mapped."""

from __future__ import annotations

import mmap
import os
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import BaseModel, ConfigDict


class SegmentError(Exception):
    """Say why a segment cannot be used; it never reaches a caller."""


class ArrayEntry(BaseModel):
    """Say the type, shape and check sum of an array."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    dtype: str
    shape: tuple[int, ...]
    crc: int


class FileSink:
    """Write arrays of equal row shape into one file, with its check sum."""

    def __init__(self, path: Path) -> None:
        """Create the file."""
        self._path = path
        self._file: BinaryIO | None = path.open("xb")
        self._crc = 0
        self._rows = 0
        self._row: tuple[str, tuple[int, ...]] = ("|u1", ())

    def append(self, array: Any) -> None:  # noqa: ANN401 - an array of any type
        """Add rows."""
        import numpy as np

        assert self._file is not None  # nothing is added once it was read
        data = np.ascontiguousarray(array).view(np.uint8).data if array.size else b""
        self._file.write(data)
        self._crc = zlib.crc32(data, self._crc)
        self._rows += len(array)
        self._row = (array.dtype.str, array.shape[1:])

    def array(self) -> Any:  # noqa: ANN401 - an array of any type
        """End the file, make sure it is on disk, and return it mapped."""
        self.close(durable=True)
        return mapped(self._path, self.entry())

    def entry(self) -> ArrayEntry:
        """Return what the manifest says of this array."""
        dtype, shape = self._row
        return ArrayEntry(dtype=dtype, shape=(self._rows, *shape), crc=self._crc)

    def close(self, *, durable: bool = False) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.flush()
            if durable:
                os.fsync(self._file.fileno())
            self._file.close()
            self._file = None


def mapped(path: Path, entry: ArrayEntry) -> Any:  # noqa: ANN401 - an array of any type
    """Map an array read-only; raise SegmentError unless the file has exactly its size."""
    import numpy as np

    try:
        dtype = np.dtype(entry.dtype)
        size = dtype.itemsize
        for length in entry.shape:
            size *= length
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size != size:
                raise SegmentError(f"{path.name} has the wrong size")
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        return np.frombuffer(data, dtype=dtype).reshape(entry.shape)
    except (OSError, ValueError, TypeError) as error:
        raise SegmentError(f"{path.name} cannot be read ({error})") from None
