"""Give memory back to the system that a large piece of work has left free in this process."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress


def release_memory() -> None:
    """Let the C library return its free pages; where it cannot be asked, nothing happens.

    It keeps what many threads have used and freed, hundreds of MB after a large document.
    """
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):  # another C library than glibc
            ctypes.CDLL(None).malloc_trim(0)
