"""What is known to be wrong with a data directory while it is open."""

from __future__ import annotations

import threading

ROWS_LOST = "rows of the catalogue are missing"


def check_server(error: Exception) -> None:
    """Raise an error of a server again: one that is away says nothing of damage."""
    if hasattr(error, "sqlstate"):
        raise error


class Defects:
    """Hold reasons by what they concern; answers carry them as warnings until they are cleared.

    `malformed` is the reason why the catalogue is not written any more, "" for none; `lost` says
    which of its rows are missing, for which it is not written either; `distrusted` is the reason
    why vectors do not answer at the moment.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reasons: dict[str, str] = {}
        self.malformed = ""
        self.lost = ""
        self.distrusted = ""

    @property
    def read_only(self) -> bool:
        """Tell whether nothing may be written, not even a repair."""
        return bool(self.malformed or self.lost)

    def report(self, what: str, reason: str) -> None:
        """Note what is wrong; a later reason takes the place of an earlier one."""
        with self._lock:
            self._reasons[what] = reason

    def clear(self, beginning: str) -> None:
        """Forget what was noted under names that begin so."""
        with self._lock:
            for what in [name for name in self._reasons if name.startswith(beginning)]:
                del self._reasons[what]

    def warnings(self) -> list[str]:
        """Return the reasons, in the order in which they were found."""
        with self._lock:
            found = list(self._reasons.values())
        if self.lost:
            found.insert(
                0,
                f"{ROWS_LOST} ({self.lost}): answers may lack what was in"
                " them, and nothing is written; run `carrel doctor`",
            )
        if self.malformed:
            found.insert(
                0,
                f"the catalogue is damaged ({self.malformed}): answers may lack what was in it;"
                " restore it from a backup",
            )
        if self.distrusted:
            found.append(f"keyword search only: {self.distrusted}")
        return found
