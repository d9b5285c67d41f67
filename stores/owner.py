"""Which process owns a data directory: metadata beside its lock, for who finds it locked."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from core.errors import DataLockedError

OWNER_FILE = "owner.json"
NEW = ".new"
MOST_BYTES = 16_384
SECRET_BYTES = 32


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
    folder: str = field(
        default="", compare=False
    )  # which one it was written in, as the system knows it

    @property
    def is_here(self) -> bool:
        """Tell whether the process is one of this machine."""
        return self.host in ("", socket.gethostname())

    @property
    def is_server(self) -> bool:
        """Tell whether it answers at an address."""
        return bool(self.url)

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
            hint = "ask it over HTTP, or stop it"
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


def as_server(owner: Owner, url: str, port: int) -> Owner:
    """Return the owner as a server at a URL, with a new secret for its control port."""
    return replace(owner, url=url, port=port, secret=secrets.token_hex(SECRET_BYTES))


def write_owner(folder: Path, owner: Owner) -> None:
    """Leave the note, for this user alone and in one piece; the caller holds the lock.

    A full disk must not stop a search: then there is no note, rather than an old one.
    """
    path, new = folder / OWNER_FILE, folder / (OWNER_FILE + NEW)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    try:
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, flags, 0o600), "w", encoding="utf-8") as file:
            json.dump(asdict(replace(owner, folder=_identity(folder))), file)
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
    texts = ("command", "since", "host", "url", "secret", "folder")
    if any(kinds[name] is not str for name in texts) or kinds["pid"] is not int:
        return None
    if kinds["port"] is not int or not 0 <= owner.port <= 65_535 or owner.pid <= 0:
        return None
    return None if owner.is_gone else owner


def is_of(owner: Owner, folder: Path) -> bool:
    """Tell whether a note was written in this folder, and not copied into it."""
    try:
        return bool(owner.folder) and owner.folder == _identity(folder)
    except OSError:
        return False


def _identity(folder: Path) -> str:
    found = folder.stat()
    return f"{found.st_dev}:{found.st_ino}" if found.st_ino else ""


def remove_owner(folder: Path) -> None:
    """Take the note away; the caller holds the lock."""
    with suppress(OSError):
        (folder / OWNER_FILE).unlink(missing_ok=True)
