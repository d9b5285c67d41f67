"""Whether a folder is a data directory, or may become one."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import OperatorError
from stores.sqlite.schema import check_format

if TYPE_CHECKING:
    from core.settings import Settings

MEMMAP, CHROMA, MILVUS = "memmap", "chroma", "milvus"  # the search indexes
# Of each index, the one with words first.
FOLDERS = {MEMMAP: ("segments",), CHROMA: ("words", "chroma"), MILVUS: ("words", "milvus")}
ALL_FOLDERS = tuple(dict.fromkeys(name for folders in FOLDERS.values() for name in folders))
WORDS = tuple(dict.fromkeys(folders[0] for folders in FOLDERS.values()))
VECTOR_FOLDERS = tuple(folders[1] for folders in FOLDERS.values() if folders[1:])
CATALOGUE = "catalogue.sqlite3"
POSTGRES = "catalogue.postgres"  # in its place: which database has the catalogue
MOVED = ".moved"  # at the end of what a migration leaves behind
SQLITE = "sqlite"  # the setting `catalogue` of a directory without one
PRIVATE = 0o700  # the rights of its user alone
OTHERS = 0o077  # all rights of group and others
log = logging.getLogger("carrel.data")
# How the names of what holds texts begin, for those who have put a link in the place of one.
OURS = ("catalogue.", "conversations.", "audit.", *ALL_FOLDERS, "uploads", "sources")


def data_folder(settings: Settings) -> Path:
    """Return the data directory of these settings, absolute: child processes work elsewhere."""
    return settings.data.expanduser().absolute()


def check_folder(folder: Path, *, create: bool, catalogue: str = SQLITE) -> None:
    """Raise OperatorError unless the folder holds data of this format, or may be created.

    It is created for its user alone. `catalogue` is the setting, which must fit.
    """
    try:
        if create and not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=PRIVATE, exist_ok=True)
        path, other = folder / CATALOGUE, folder / POSTGRES
        if catalogue != SQLITE:
            path, other = other, path
        # An empty file is all that is left when the first ingest was killed at its start.
        missing = not path.is_file() or not path.stat().st_size
        replaced = missing and path.exists() and not path.is_file()
        elsewhere = missing and other.is_file() and other.stat().st_size
    except OSError as error:
        raise OperatorError(
            "the data directory must be a folder that can be written",
            value=f"{folder} ({error.strerror})",
            hint="correct its permissions, or give another directory with --data",
        ) from None
    if folder.exists() and not folder.is_dir():
        raise OperatorError(
            "the data directory must be a folder",
            value=f"{folder} is a file",
            hint="give a directory with --data",
        )
    if replaced:
        raise OperatorError(
            "the catalogue must be a file",
            value=str(path),
            hint="restore it from a backup, or move it away and ingest again",
        )
    if elsewhere:
        at = "PostgreSQL" if catalogue == SQLITE else "SQLite"
        wanted = "its address" if catalogue == SQLITE else SQLITE
        raise OperatorError(
            f"the data directory has its catalogue in {at}",
            value=str(folder),
            hint=f"set CARREL_CATALOGUE to {wanted}, or give another directory with --data",
        )
    if missing and not create:
        raise OperatorError(
            "there is no data here yet",
            value=str(folder),
            hint="run `carrel ingest PATH` first, or give the directory with --data",
        )
    if catalogue == SQLITE:
        check_format(path)


def open_to_others(folder: Path) -> str:
    """Return the mode of a folder that other users of the machine may enter, else ""."""
    if os.name != "posix" or not folder.exists():
        return ""
    mode = stat.S_IMODE(folder.stat().st_mode)
    return f"{mode:o}" if mode & OTHERS else ""


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system has that notion."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def private_files() -> Iterator[None]:
    """Let files and folders that this process makes in the block be its user's alone."""
    before = os.umask(OTHERS)
    try:
        yield
    finally:
        os.umask(before)


def make_private(folder: Path, *, insecure: bool = False) -> None:
    """Close what other users of the machine can read or write, as far as it is this user's.

    Raises OperatorError for what stays open; with `insecure` nothing is changed or refused.
    """
    if insecure:
        return
    folder = folder.resolve()
    reachable = open_to_others(folder)
    closed, left = 0, []
    for path, status in open_places(folder):  # from the top: who is kept out swaps nothing below
        if _close(path):
            closed += 1
        else:
            left.append((path, status))
    if left:
        path, status = left[0]
        raise OperatorError(
            "other users of this machine can read or write places of the data directory:"
            f" {len(left)}; the first has mode {stat.S_IMODE(status.st_mode):o} and is of user"
            f" {status.st_uid}",
            value=str(path),
            hint="have its owner run `chmod -R go=` on the directory, or go on with"
            " --insecure-permissions (CARREL_STORAGE__INSECURE_PERMISSIONS=1)",
        )
    if reachable:
        log.warning(
            "%s was open to other users of this machine (mode %s); it is closed now, with what is"
            " in it (%d files and folders)",
            *(folder, reachable, closed),
        )


def open_places(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield what other users may read or write: the folder, what is in it, and so on below.

    A closed folder below is not looked into, since nobody else gets past it: thousands of files
    cost nothing then. Links are not followed; of one in the place of a file of ours, its target
    counts.
    """
    if os.name != "posix":
        return
    if (status := folder.stat()).st_mode & OTHERS:
        yield folder, status
    waiting = [folder]
    while waiting:
        for path in _listed(waiting.pop()):
            with suppress(OSError):  # it is gone by now
                status = path.lstat()
                is_ours = path.parent == folder and path.name.startswith(OURS)
                if is_ours and stat.S_ISLNK(status.st_mode) and path.stat().st_mode & OTHERS:
                    yield path, path.stat()  # what it leads to is not ours to close
                is_folder = stat.S_ISDIR(status.st_mode)
                if status.st_mode & OTHERS and (is_folder or stat.S_ISREG(status.st_mode)):
                    yield path, status
                    waiting += [path] if is_folder else []


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _close(path: Path) -> bool:
    """Take all rights of others away; return False when it is not ours, or they stay."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return not path.exists()
    try:
        found = os.fstat(handle)
        if found.st_uid != os.geteuid():
            return False
        os.fchmod(handle, stat.S_IMODE(found.st_mode) & ~OTHERS)
        return not os.fstat(handle).st_mode & OTHERS  # some file systems have no modes
    except OSError:
        return False
    finally:
        os.close(handle)
