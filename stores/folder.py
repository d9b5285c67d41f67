"""Whether a folder is a data directory, or may become one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import OperatorError

if TYPE_CHECKING:
    from core.settings import Settings

CATALOGUE = "catalogue.sqlite3"
PRIVATE = 0o700
OTHERS = 0o077


def data_folder(settings: Settings) -> Path:
    """Return the data directory of these settings."""
    return whole(settings.data)


def whole(folder: Path) -> Path:
    """Return a data directory's whole path; child processes work elsewhere."""
    return folder.expanduser().absolute()


def check_folder(folder: Path, *, create: bool) -> None:
    """Raise OperatorError unless the folder holds data, or may be created, for its user alone."""
    try:
        if create and not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=PRIVATE, exist_ok=True)
        if create and not folder.is_dir():
            folder.mkdir()  # whose error says what is there
        catalogue = folder / CATALOGUE
        # An empty file is all that is left when the first ingest was killed at its start.
        missing = not catalogue.is_file() or not catalogue.stat().st_size
        replaced = missing and catalogue.exists() and not catalogue.is_file()
    except OSError as error:
        raise OperatorError(
            "the data directory must be a folder that can be written",
            value=f"{folder} ({error.strerror})",
            hint="correct its permissions, or give another directory with --data",
        ) from None
    if replaced:
        raise OperatorError(
            "the catalogue must be a file",
            value=str(catalogue),
            hint="restore it from a backup, or move it away and ingest again",
        )
    if missing and not create:
        raise OperatorError(
            "there is no data here yet",
            value=str(folder),
            hint="run `carrel ingest PATH` first, or give the directory with --data",
        )


def open_to_others(folder: Path) -> str:
    """Return the mode of a folder that other users of the machine may enter, else ""."""
    if os.name != "posix" or not folder.exists():
        return ""
    mode = folder.stat().st_mode & 0o777
    return f"{mode:o}" if mode & OTHERS else ""
