"""One process owns a data directory; a second is told which."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from types import TracebackType

from filelock import FileLock, Timeout

from core.errors import DataLockedError, OperatorError


class OwnerLock:
    """Hold the exclusive lock of one data directory for as long as the process uses it."""

    def __init__(self, data_dir: Path, *, wait_s: float) -> None:
        """Prepare the lock; nothing is locked until `acquire`."""
        # Not bound to a thread: a server opens and closes its store on different ones.
        self._lock = FileLock(str(data_dir / "owner.lock"), thread_local=False)
        self._owner = data_dir / "owner.json"
        self._data_dir = data_dir
        self._wait_s = wait_s

    def acquire(self) -> None:
        """Take the lock, waiting up to `wait_s`, or name the process that holds it."""
        try:
            self._lock.acquire(timeout=self._wait_s, poll_interval=0.05)
        except Timeout:
            raise DataLockedError(
                "one process at a time uses a data directory",
                value=f"{self._data_dir} is in use by {self._owner_name()}",
                hint="wait for it to end, or give another directory with --data",
            ) from None
        except (OSError, NotImplementedError) as error:
            raise OperatorError(
                "the data directory must be writable and its file system must have locks",
                value=f"{self._data_dir} ({getattr(error, 'strerror', None) or error})",
                hint="correct its permissions, or give another directory with --data",
            ) from None
        command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:2]])
        owner = {"pid": os.getpid(), "command": command, "since": time.strftime("%H:%M:%S")}
        try:
            self._owner.write_text(json.dumps(owner), encoding="utf-8")
        except OSError:  # a full disk must not stop a search; the name is a courtesy
            return

    @property
    def held(self) -> bool:
        """Tell whether this process has the lock."""
        return bool(self._lock.is_locked)

    def release(self) -> None:
        """Give the lock back; safe to call twice."""
        if self._lock.is_locked:
            self._owner.unlink(missing_ok=True)
            self._lock.release()

    def _owner_name(self) -> str:
        try:
            owner = json.loads(self._owner.read_text(encoding="utf-8"))
            return f"process {owner['pid']} ({owner['command']}, since {owner['since']})"
        except (OSError, ValueError, KeyError, TypeError):
            return "another process"

    def __enter__(self) -> OwnerLock:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()
