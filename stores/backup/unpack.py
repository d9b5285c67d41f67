"""Read a backup into an empty folder and believe nothing of it before it is checked."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import IO, cast

from core.errors import OperatorError
from stores.backup.manifest import (
    BLOCK,
    CATALOGUE,
    MANIFEST,
    MANIFEST_BYTES,
    PARTS,
    BackupFile,
    BackupManifest,
    read_manifest,
)
from stores.backup.sealing import SealedReader, is_sealed
from stores.runlog.conversations import THREADS
from stores.sqlite.cursors import Connection
from stores.sqlite.schema import FORMAT, make_schema

GB = 1_000_000_000
MARGIN = 50_000_000  # bytes of disk that stay free


def unpack(backup: Path, folder: Path, *, key: bytes | None, max_gb: float) -> BackupManifest:
    """Write the checked parts of a backup into a folder; raises OperatorError for a false one."""
    try:
        with backup.open("rb") as file:
            stream = _opened(file, backup, key)
            found, text = _extracted(stream, folder, int(max_gb * GB))
    except (tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError) as error:
        raise _damaged(backup, str(error)) from None
    except OSError as error:
        raise OperatorError(
            "the backup must be readable, and its parts be written",
            value=f"{backup} ({error.strerror or error})",
        ) from None
    if text is None:
        raise _damaged(backup, "it ends before its manifest")
    manifest = read_manifest(text)
    if sorted(found, key=lambda part: part.name) != sorted(
        manifest.parts, key=lambda part: part.name
    ):
        raise _damaged(backup, "its parts are not those of the manifest")
    _check_files(folder)
    return manifest


def _opened(file: IO[bytes], backup: Path, key: bytes | None) -> IO[bytes]:
    sealed = is_sealed(file)
    if sealed and key is None:
        raise OperatorError(
            "the backup is sealed", value=str(backup), hint="give its key with --key-file"
        )
    if key is None:
        return file
    if not sealed:
        raise OperatorError(
            "with --key-file only a sealed backup is restored",
            value=f"{backup} is not sealed, so nobody can say who made it",
            hint="leave --key-file out if you know where it comes from",
        )
    return cast(IO[bytes], SealedReader(file, key))


def _extracted(stream: IO[bytes], folder: Path, most: int) -> tuple[list[BackupFile], bytes | None]:
    """Write the parts and return them as they are, with the manifest that must come last."""
    found: list[BackupFile] = []
    text = None
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for entry in archive:
            if text is not None:
                raise ValueError("something comes after the manifest")
            # Holes of a sparse file cost nothing to declare, and skipping them takes forever.
            plain = entry.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not entry.issparse()
            content = archive.extractfile(entry) if plain else None
            if content is None:
                raise ValueError(f"'{entry.name}' is no plain file")
            if entry.name == MANIFEST:
                if entry.size > MANIFEST_BYTES:
                    raise ValueError("the manifest is too large")
                text = content.read()
                continue
            if entry.name not in PARTS or entry.name in {part.name for part in found}:
                raise ValueError(f"'{entry.name}' is no part of a backup")
            most -= entry.size
            if most < 0:
                raise ValueError("it is larger than storage.backup_max_gb allows")
            found.append(_write(content, folder / entry.name, entry))
    return found, text


def _write(content: IO[bytes], path: Path, entry: tarfile.TarInfo) -> BackupFile:
    if shutil.disk_usage(path.parent).free < entry.size + MARGIN:
        raise OperatorError(
            "restoring needs more free disk", value=str(path.parent), hint="free some space"
        )
    digest, size = hashlib.sha256(), 0
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        while block := content.read(BLOCK):
            file.write(block)
            digest.update(block)
            size += len(block)
        file.flush()
        os.fsync(file.fileno())
    return BackupFile.model_validate(
        {"name": path.name, "bytes": size, "sha256": digest.hexdigest()}
    )


def _check_files(folder: Path) -> None:
    """Check both databases as files, and that the catalogue has no tables or triggers but ours."""
    for name in (CATALOGUE, THREADS):
        path = folder / name
        if not path.exists():
            if name == CATALOGUE:
                raise _damaged(path, "there is no catalogue in it")
            continue
        try:
            with closing(
                sqlite3.connect(path, isolation_level=None, factory=Connection)
            ) as connection:
                connection.execute("PRAGMA trusted_schema=OFF")
                _check_database(connection, path)
        except sqlite3.DatabaseError as error:
            raise _damaged(path, str(error)) from None


def _check_database(connection: sqlite3.Connection, path: Path) -> None:
    damage = [row[0] for row in connection.execute("PRAGMA integrity_check(1)") if row[0] != "ok"]
    if damage:
        raise _damaged(path, damage[0])
    schema = _schema(connection)
    if path.name == THREADS:
        if strange := [name for kind, name, _ in schema if kind in ("trigger", "view")]:
            raise _damaged(path, f"it has something that Carrel did not make: {strange[0]}")
        return
    if connection.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
        raise _damaged(path, "it is not of the format that the manifest says")
    if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise _damaged(path, "its rows do not belong together")
    if strange := [name for _, name, _ in schema ^ _own_schema()]:
        raise _damaged(path, f"it is not as Carrel makes it: {sorted(strange)[0]}")


def _schema(connection: sqlite3.Connection) -> set[tuple[str, str, str]]:
    rows = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {(kind, name, " ".join(sql.split())) for kind, name, sql in rows}


def _own_schema() -> set[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        make_schema(connection)
        return _schema(connection)


def _damaged(path: Path, why: str) -> OperatorError:
    return OperatorError(
        "the backup is damaged or was not made by Carrel",
        value=f"{path.name}: {why}",
        hint="nothing was restored; take another backup",
    )
