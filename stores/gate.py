"""Keep writers of a file waiting until somebody has looked whether writing makes things worse."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Gate:
    """Stand open until shut; the first who wants to pass then proves that it may be opened."""

    def __init__(self) -> None:
        """Stand open."""
        self._lock = threading.RLock()
        self._prove: Callable[[], None] | None = None
        self._proving = False

    def shut(self, prove: Callable[[], None]) -> None:
        """Let nobody pass before `prove` has run; what it does itself passes."""
        self._prove = prove

    def passed(self) -> None:
        """Return when the gate is open; prove it here when nobody has."""
        if self._prove is None:
            return
        with self._lock:  # others wait here while one proves
            if self._prove is None or self._proving:
                return
            self._proving = True
            try:
                self._prove()
            finally:
                self._prove, self._proving = None, False
