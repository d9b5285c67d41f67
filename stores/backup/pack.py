"""Write a backup: a tar file of the copied parts with the manifest last, encrypted on request."""

from __future__ import annotations

import datetime
import io
import os
import shutil
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, cast

from core.distribution import program_version
from core.errors import InUseError, OperatorError
from stores.backup.manifest import MANIFEST, PARTS, WORK, BackupManifest, part_of
from stores.backup.sealing import SealingWriter
from stores.backup.snapshot import snapshot
from stores.segments.files import sync_folder
from stores.sqlite.database import Database

NEW = ".new"
MB = 1_000_000
BACKING_UP = threading.Lock()

Progress = Callable[[str, int, int], None]


def make_backup(
    database: Database,
    target: Path,
    progress: Progress,
    *,
    key: bytes | None = None,
    force: bool = False,
    min_free_mb: int = 0,
) -> BackupManifest:
    """Back up an open data directory into one file, which is complete or absent.

    With `key` it is encrypted. Raises OperatorError for a file that exists (unless `force`), too
    little disk, or a damaged catalogue.
    """
    _check_target(target, force)
    work = database.path.parent / WORK  # there the copies are as safe as what is beside them
    log = database.path.with_name(database.path.name + "-wal")
    size = sum(path.stat().st_size for path in (database.path, log) if path.exists())
    for folder in (database.path.parent, target.parent):
        _check_space(folder, size, min_free_mb)
    if not BACKING_UP.acquire(blocking=False):
        raise InUseError("one backup at a time is made", hint="wait for the other one")
    try:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(mode=0o700)
        facts = snapshot(database, work, progress)
        return _packed(work, target, facts, key, progress)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        BACKING_UP.release()


def _check_target(target: Path, force: bool) -> None:
    if target.exists() and (not force or not target.is_file()):
        raise OperatorError(
            "a backup does not overwrite a file",
            value=str(target),
            hint="give another name, or --force",
        )
    if not target.parent.is_dir():
        raise OperatorError("the folder of the backup must exist", value=str(target.parent))


def _check_space(folder: Path, size: int, min_free_mb: int) -> None:
    free = shutil.disk_usage(folder).free
    needed = size + min_free_mb * MB
    if free < needed:
        raise OperatorError(
            f"a backup needs {needed // MB} MB of free disk",
            value=f"{free // MB} MB in {folder}",
            hint="free some space, or give a file elsewhere",
        )


def _packed(
    work: Path, target: Path, facts: dict[str, object], key: bytes | None, progress: Progress
) -> BackupManifest:
    parts = [part_of(work / name) for name in PARTS if (work / name).exists()]
    made = {
        "carrel": program_version(),
        "made_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "parts": [part.model_dump() for part in parts],
    }
    manifest = BackupManifest.model_validate({**facts, **made})
    new = target.with_name(target.name + NEW)
    new.unlink(missing_ok=True)
    try:
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            sealing = SealingWriter(file, key) if key is not None else None
            _write(cast(IO[bytes], sealing or file), work, manifest, progress)
            if sealing is not None:
                sealing.close()
            file.flush()
            os.fsync(file.fileno())
        new.replace(target)
    except OSError as error:
        raise OperatorError(
            "the backup could not be written",
            value=f"{target} ({error.strerror or error})",
            hint="give a file in a folder that can be written and has room",
        ) from None
    finally:
        new.unlink(missing_ok=True)
    sync_folder(target.parent)
    return manifest


def _write(file: IO[bytes], work: Path, manifest: BackupManifest, progress: Progress) -> None:
    total = sum(part.bytes for part in manifest.parts)
    done = 0
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for part in manifest.parts:
            with (work / part.name).open("rb") as content:
                archive.addfile(_entry(part.name, part.bytes), content)
            done += part.bytes
            progress("write", done, total)
        text = manifest.model_dump_json(indent=1).encode()
        archive.addfile(_entry(MANIFEST, len(text)), io.BytesIO(text))


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o600
    return entry
