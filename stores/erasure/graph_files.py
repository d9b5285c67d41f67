"""Clear what Chroma's graph files hold beside their vectors: memory that was used before.

The files of an index are as large as it may grow. What it does not use yet was never set, so that
it says whatever the process had there: mostly the vectors of the index before it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from core.errors import OperatorError

# version; then as 64 bit numbers the offset, the most elements, the elements, bytes of an element.
HEADER = struct.Struct("<i4Q")
VERSION = 1
LENGTH = 4  # bytes of the length of an element's list
M_PERTURB, PATTERN = -6, 0x5A  # of glibc's mallopt: what is freed is overwritten
BLOCK = bytes(1 << 20)


def clear_unused(folder: Path) -> None:
    """Overwrite with zeros what an index in this folder does not use.

    Raises OperatorError where the files are not as they were when this was written.
    """
    header = folder / "header.bin"
    if not header.exists():
        return
    version, _, most, count, size = HEADER.unpack(header.read_bytes()[: HEADER.size])
    for name, width in (("data_level0.bin", size), ("length.bin", LENGTH)):
        path = folder / name
        known = count * width <= path.stat().st_size <= most * width
        if version != VERSION or not known:
            raise OperatorError(
                "the vector index has files of another format than this Carrel can erase from",
                value=f"{path} (format {version})",
                hint="the text is erased; `carrel reindex` writes all vectors anew",
            )
        _zero(path, count * width)


def _zero(path: Path, start: int) -> None:
    with path.open("r+b") as file:
        left = file.seek(0, os.SEEK_END) - start
        file.seek(start)
        while left > 0:
            left -= file.write(BLOCK[: min(left, len(BLOCK))])
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def memory_cleared() -> Iterator[None]:
    """Have memory overwritten when it is freed meanwhile, where the C library is glibc."""
    try:
        tune = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another system
        yield
        return
    tune(M_PERTURB, PATTERN)
    try:
        yield
    finally:
        tune(M_PERTURB, 0)
