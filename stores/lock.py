"""One process owns a data directory; a second one learns which.

Two locks are held: of the file `owner.lock`, which every system has, and of the directory itself
where the system can lock one. The second cannot be deleted while it is held, nor copied, and is the
same one whichever path leads to it.
"""

from __future__ import annotations

import errno
import os
import time
import weakref
from pathlib import Path
from types import TracebackType

from filelock import FileLock, Timeout

from core.errors import OperatorError
from core.settings import Settings
from stores.folder import check_folder, data_folder, make_private
from stores.owner import (
    OwnedError,
    Owner,
    as_server,
    read_owner,
    remove_owner,
    this_process,
    write_owner,
)

POLL_S = 0.05
LOCK_FILE = "owner.lock"


class OwnerLock:
    """Hold the exclusive lock of one data directory for as long as the process uses it."""

    def __init__(self, data_dir: Path, *, wait_s: float) -> None:
        """Prepare the lock; nothing is locked until `acquire`."""
        # Not bound to a thread: a server opens and closes its store on different ones.
        self._file = FileLock(str(data_dir / LOCK_FILE), thread_local=False, mode=0o600)
        self._folder = _FolderLock(data_dir)
        self._data_dir = data_dir
        self._wait_s = wait_s
        self._owner: Owner | None = None

    @property
    def held(self) -> bool:
        """Tell whether this process, and not one it was forked from, holds the lock."""
        return self._owner is not None and self._owner.pid == os.getpid()

    def acquire(self) -> None:
        """Take the lock, waiting up to `wait_s`, or name the process that holds it.

        A server is not waited for: it does not end by itself. Raises OwnedError.
        """
        deadline = time.monotonic() + self._wait_s
        while not self._taken():
            holder = read_owner(self._data_dir)
            if time.monotonic() >= deadline or (holder is not None and holder.is_server):
                raise OwnedError(self._data_dir, holder)
            time.sleep(POLL_S)
        self._owner = this_process()
        write_owner(self._data_dir, self._owner)

    def announce(self, url: str, port: int) -> Owner:
        """Note that the owner is a server at a URL; `port` is where it takes commands, or 0."""
        assert self._owner is not None
        self._owner = as_server(self._owner, url, port)
        write_owner(self._data_dir, self._owner)
        return self._owner

    def withdraw(self) -> None:
        """Note that the server stops: who comes now waits for its end."""
        if self.held:
            self._owner = this_process()
            write_owner(self._data_dir, self._owner)

    def release(self) -> None:
        """Give the lock back; safe to call twice, and in a child that was forked meanwhile."""
        if not self.held:
            return
        self._owner = None
        remove_owner(self._data_dir)
        self._folder.release()
        self._file.release()

    def _taken(self) -> bool:
        try:
            self._file.acquire(timeout=0)
            if self._folder.acquire():
                return True
            self._file.release()
        except Timeout:
            pass
        except (OSError, NotImplementedError) as error:
            raise OperatorError(
                "the data directory must be writable and its file system must have locks",
                value=f"{self._data_dir} ({getattr(error, 'strerror', None) or error})",
                hint="correct its permissions, or give another directory with --data",
            ) from None
        return False

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


def locked(settings: Settings, *, create: bool = False) -> OwnerLock:
    """Own the data directory, closed to other users of the machine.

    Raises OperatorError, or OwnedError with who owns it.
    """
    folder = data_folder(settings)
    check_folder(folder, create=create)
    lock = OwnerLock(folder, wait_s=settings.storage.lock_wait_s)
    lock.acquire()
    try:
        make_private(folder, insecure=settings.storage.insecure_permissions)
    except BaseException:
        lock.release()
        raise
    return lock


class _FolderLock:
    """Lock a directory itself; where that cannot be done, the lock of a file has to do."""

    def __init__(self, folder: Path) -> None:
        self._path = folder
        self.handle = -1

    def acquire(self) -> bool:
        """Return False when another holds it."""
        try:
            import fcntl

            handle = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        except (ImportError, AttributeError, OSError):
            return True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            return error.errno not in (errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK)
        self.handle = handle
        _held.add(self)
        return True

    def release(self) -> None:
        """Close the handle: its lock ends with the last copy of it."""
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1
        _held.discard(self)


_held: weakref.WeakSet[_FolderLock] = weakref.WeakSet()


def _forked() -> None:
    """Close a child's copies, which would outlive the owner; the owner's own lock stays."""
    for lock in list(_held):
        lock.release()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forked)
