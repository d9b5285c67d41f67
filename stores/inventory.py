"""What a data directory is made of besides its contents: versions, disk space, files of no use."""

from __future__ import annotations

import platform
import shutil
import sqlite3
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stores.store import Store

# SQLite 3.7.0 to 3.51.2 can lose a commit when two connections write at one moment in WAL mode.
WAL_RESET = ((3, 7, 0), (3, 51, 3))
MEGABYTE = 1 << 20
PART = ".part"


def versions(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return the versions of what reads and writes the directory, and of its schema."""
    migrations = connection.execute("SELECT name FROM migrations ORDER BY name").fetchall()
    lowest, fixed = WAL_RESET
    affected = lowest <= sqlite3.sqlite_version_info < fixed
    return {
        "carrel": _version("carrel"),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "sqlite_note": (
            "this SQLite has the WAL-reset bug, which needs two connections that write at one"
            " moment; Carrel has one writer per data directory"
            if affected
            else ""
        ),
        "chromadb": _version("chromadb"),
        "schema": migrations[-1][0] if migrations else "",
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def disk_space(folder: Path) -> dict[str, int]:
    """Return the megabytes that the directory takes and that are free beside it."""
    used = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {"used_mb": used // MEGABYTE, "free_mb": shutil.disk_usage(folder).free // MEGABYTE}


def orphan_files(store: Store) -> list[str]:
    """Return what lies in the directory and belongs to nothing, as paths below it.

    Segments that are not published, folders of Chroma that its own catalogue does not name, and
    files that were being written when a process ended.
    """
    folder = store.folder
    connection = store.database.read()
    published = {
        f"{row[0]}/{row[1]}"
        for row in connection.execute("SELECT collection_id, name FROM segments")
    }
    found = [
        path
        for home in _folders(folder / "segments")
        for path in _folders(home)
        if f"{home.name}/{path.name}" not in published
    ]
    named = _chroma_folders(folder / "chroma")
    if named is not None:
        found += [path for path in _folders(folder / "chroma") if path.name not in named]
    found += [path for path in folder.glob("*" + PART) if path.is_file()]
    return sorted(path.relative_to(folder).as_posix() for path in found)


def _folders(home: Path) -> list[Path]:
    return [path for path in home.iterdir() if path.is_dir()] if home.is_dir() else []


def _chroma_folders(chroma: Path) -> set[str] | None:
    """Return the folders of vectors that Chroma's catalogue names, None when it cannot be read."""
    path = chroma / "chroma.sqlite3"
    if not path.is_file():
        return None
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    except sqlite3.Error:
        return None
    try:
        return {str(row[0]) for row in connection.execute("SELECT id FROM segments")}
    except sqlite3.Error:
        return None
    finally:
        connection.close()
