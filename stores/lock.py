"""Who uses a data directory: one process, which a second one learns, and in it one long work.

Two locks are held: of the file `owner.lock`, which every system has, and of the directory itself
where the system can lock one. The second cannot be deleted while it is held, nor copied, and is the
same one whichever path leads to it.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import DataLockedError, OperatorError
from stores.folder import (
    CHROMA,
    MILVUS,
    SQLITE,
    VECTOR_FOLDERS,
    check_folder,
    data_folder,
    make_private,
)

if TYPE_CHECKING:
    from core.settings import Settings

OWNER_FILE = "owner.json"
NEW = ".new"
MOST_BYTES = 16_384  # of a note, which has some 300; a longer file is none of ours
SECRET_BYTES = 32  # 256 bits, which nobody guesses


@dataclass(frozen=True)
class Owner:
    """Name a process; a server also has a URL, a port for its operator's commands and a secret."""

    pid: int
    command: str
    since: str
    host: str = ""
    url: str = ""
    port: int = 0
    secret: str = ""

    @property
    def is_here(self) -> bool:
        """Tell whether the process is one of this machine."""
        return self.host in ("", socket.gethostname())

    @property
    def is_server(self) -> bool:
        """Tell whether it answers over HTTP or takes commands, as a worker does."""
        return bool(self.url or self.port)

    @property
    def is_starting(self) -> bool:
        """Tell whether it is one of this machine that does not take commands yet."""
        is_server = self.command.endswith((" serve", " worker"))
        return is_server and not self.port and self.is_here and not self.is_gone

    @property
    def is_gone(self) -> bool:
        """Tell whether no process of this machine has the number any more."""
        if not self.is_here or os.name != "posix":  # elsewhere a signal 0 would end it
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except (PermissionError, OverflowError):
            return False
        return False

    def describe(self) -> str:
        """Return the process in words, with its address; its secret is no part of them."""
        where = "" if self.is_here else f" on {self.host}"
        at = f" at {self.url}" if self.url else ""
        own = ", this process" if self.is_here and self.pid == os.getpid() else ""
        return f"process {self.pid} ({self.command}, since {self.since}{own}){where}{at}"


class OwnedError(DataLockedError):
    """Refuse a second opener; `owner` is None when it left no note that can be read."""

    def __init__(self, folder: Path, owner: Owner | None, *, late_s: float = 0) -> None:
        """Name the owner and what to do about it; it gave no answer within `late_s` seconds."""
        self.folder = folder
        self.owner = owner
        hint = "wait for it to end"
        if owner is not None and owner.is_server:
            hint = "ask it over HTTP, or stop it" if owner.url else "stop it"
        if owner is not None and late_s:
            hint = (
                f"it does not respond (no answer within {late_s:g} s): wait if it is busy, have it"
                f" go on if it was suspended (`kill -CONT {owner.pid}`), end it"
            )
        holder = owner.describe() if owner else "another process"
        super().__init__(  # a rule is shown in full, a long value is cut
            f"the data directory is in use by {holder}; one process at a time uses it",
            value=str(folder),
            hint=f"{hint}, or give another directory with --data",
        )


def this_process() -> Owner:
    """Return the owner that this process is, without an address."""
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:2]])
    return Owner(os.getpid(), command, time.strftime("%H:%M:%S"), socket.gethostname())


def write_owner(folder: Path, owner: Owner) -> None:
    """Leave the note, for this user alone and in one piece; the caller holds the lock.

    A full disk must not stop a search: then there is no note, rather than an old one.
    """
    path, new = folder / OWNER_FILE, folder / (OWNER_FILE + NEW)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    try:
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, flags, 0o600), "w", encoding="utf-8") as file:
            json.dump(asdict(owner), file)
        os.replace(new, path)
    except OSError:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def read_owner(folder: Path) -> Owner | None:
    """Return who holds the lock, None when nothing that is still true is noted.

    To be asked only when the lock is held: a note that was copied or left behind says nothing.
    """
    try:
        with (folder / OWNER_FILE).open("rb") as file:
            found = json.loads(file.read(MOST_BYTES))
        owner = Owner(**found)
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    kinds = {name: type(value) for name, value in asdict(owner).items()}
    texts = ("command", "since", "host", "url", "secret")
    if any(kinds[name] is not str for name in texts) or kinds["pid"] is not int:
        return None
    if kinds["port"] is not int or not 0 <= owner.port <= 65_535 or owner.pid <= 0:
        return None
    return None if owner.is_gone else owner


POLL_S = 0.05  # chosen, not measured: a wait that a person does not notice
LOCK_FILE = "owner.lock"


class OwnerLock:
    """Hold the lock of one data directory for as long as the process uses it."""

    def __init__(self, data_dir: Path, *, wait_s: float, shared: bool = False) -> None:
        """Lock it for one process, or `shared` by any number of them that leave no notes."""
        from filelock import FileLock  # late: who only reads an owner's note locks nothing

        # Not bound to a thread: a server opens and closes its store on different ones.
        self._file = FileLock(str(data_dir / LOCK_FILE), thread_local=False, mode=0o600)
        self._folder = _FolderLock(data_dir, shared=shared)
        self.shared = shared
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
        self._note()

    def _note(self) -> None:
        if not self.shared and self._owner is not None:
            write_owner(self._data_dir, self._owner)

    def announce(self, url: str, port: int) -> Owner:
        """Note that the owner is a server at a URL; `port` is where it takes commands, or 0."""
        assert self._owner is not None
        secret = secrets.token_hex(SECRET_BYTES)
        self._owner = replace(self._owner, url=url, port=port, secret=secret)
        self._note()
        return self._owner

    def withdraw(self) -> None:
        """Note that the server stops: who comes now waits for its end."""
        if self.held:
            self._owner = this_process()
            self._note()

    def release(self) -> None:
        """Give the lock back; safe to call twice, and in a child that was forked meanwhile."""
        if not self.held:
            return
        self._owner = None
        if not self.shared:
            with suppress(OSError):
                (self._data_dir / OWNER_FILE).unlink(missing_ok=True)
        self._folder.release()
        self._file.release()

    def _taken(self) -> bool:
        if self.shared:
            return self._folder.acquire()
        try:
            self._file.acquire(timeout=0)
            if self._folder.acquire():
                return True
            self._file.release()
        except TimeoutError:  # of filelock
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

    def __exit__(self, *error: object) -> None:
        self.release()


def is_shared(settings: Settings) -> bool:
    """Tell whether any number of processes may use the data directory.

    Its catalogue is on a server then, and so are its vectors, or they are in segments, which do
    not change.
    """
    folder = data_folder(settings)
    servers = {CHROMA: settings.chroma.url, MILVUS: "://" in settings.milvus.uri}
    local = not servers.get(settings.index, True)
    local = local or any((folder / name).exists() for name in VECTOR_FOLDERS)
    return settings.catalogue != SQLITE and not local


def locked(settings: Settings, *, create: bool = False, alone: bool = False) -> OwnerLock:
    """Own the data directory, closed to other users of the machine.

    Where several processes may use it this one joins them, unless it needs it `alone`.
    Raises OperatorError, or OwnedError with who owns it.
    """
    folder = data_folder(settings)
    check_folder(folder, create=create, catalogue=settings.catalogue)
    shared = is_shared(settings) and not alone
    lock = OwnerLock(folder, wait_s=settings.storage.lock_wait_s, shared=shared)
    lock.acquire()
    try:
        make_private(folder, insecure=settings.storage.insecure_permissions)
    except BaseException:
        lock.release()
        raise
    return lock


class _FolderLock:
    """Lock a directory itself; where that cannot be done, the lock of a file has to do."""

    def __init__(self, folder: Path, *, shared: bool) -> None:
        self._path = folder
        self._shared = shared
        self.handle = -1

    def acquire(self) -> bool:
        """Return False when another holds it."""
        try:
            import fcntl

            handle = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        except (ImportError, AttributeError, OSError):
            return True
        try:
            kind = fcntl.LOCK_SH if self._shared else fcntl.LOCK_EX
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
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


TURN_POLL_S = 0.2  # chosen, not measured: how soon a waiting work can be cancelled


class Ingesting:
    """A lock that says who holds it; a thread that holds it may take it again."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._work = ""

    @contextmanager
    def turn(self, work: str, waiting: Callable[[str], None]) -> Iterator[None]:
        """Hold the lock for a work of this name.

        While another is at work, `waiting` is called with its name again and again; what it raises
        ends the wait.
        """
        while not self._lock.acquire(timeout=TURN_POLL_S):
            waiting(self._work or "other work")
        before, self._work = self._work, work
        try:
            yield
        finally:
            self._work = before
            self._lock.release()

    def __enter__(self) -> Ingesting:
        self._lock.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.release()
