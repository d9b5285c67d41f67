"""Make a backup of one moment while others go on writing, and unpack one.

It is a tar file of copied parts with the manifest last, encrypted on request; nothing of it is
believed before it is checked.
"""

from __future__ import annotations

import datetime
import hashlib
import io
import os
import shutil
import sqlite3
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO, cast

from core.distribution import program_version
from core.errors import InUseError, OperatorError
from stores.accounts.audit_chain import HEAD_FILE, KEY_FILE
from stores.backup.format import (
    BLOCK,
    CATALOGUE,
    MANIFEST,
    MANIFEST_BYTES,
    PARTS,
    WORK,
    BackupFile,
    BackupManifest,
    SealedReader,
    SealingWriter,
    facts_of,
    is_sealed,
    part_of,
    read_manifest,
)
from stores.folder import SQLITE, sync_folder
from stores.index.place import INDEX, INDEX_ID
from stores.integrity.witness import KEY as COMMITS
from stores.runlog.conversations import THREADS, states_of
from stores.segments.rows import snapshot as reading
from stores.sqlite.connections import connect
from stores.sqlite.database import Database, explained
from stores.sqlite.implementation import of_server
from stores.sqlite.schema import FORMAT, make_schema

# Tables whose rows are derived; the virtual tables of full text are left out with all theirs.
DERIVED = frozenset({"segments", "dead_chunks", "indexed_vectors"})
FULL_TEXT = "fts_"
BUSY_S = 30.0  # for a lock of the files to copy; chosen, not measured: writes take far less
OUT = "copied"

Progress = Callable[[str, int, int], None]
States = Callable[[Path, Mapping[str, str]], object]


def snapshot(
    database: Database, folder: Path, progress: Progress, copy_states: States | None = None
) -> dict[str, object]:
    """Copy catalogue, conversations and the key of the audit log into an empty folder.

    Catalogue and conversations are of one moment: both snapshots begin while the catalogue's one
    writer waits, and a turn's state is always written before the catalogue names it. Returns the
    facts of the manifest.
    """
    data = database.path.parent
    if database.url != SQLITE:
        _copy_remote(database, folder, progress, copy_states)
        return _facts(folder)
    with (
        explained(database.path),
        _copying(database.path, folder / CATALOGUE) as catalogue,
        _copying(data / THREADS, folder / THREADS) as threads,
    ):
        with database.write():
            for connection in filter(None, (catalogue, threads)):
                connection.execute("BEGIN")
                connection.execute("SELECT count(*) FROM main.sqlite_schema").fetchone()
            for name in (KEY_FILE, HEAD_FILE):
                if (data / name).exists():
                    shutil.copyfile(data / name, folder / name)
        assert catalogue is not None  # an open store has one
        _copy(catalogue, progress)
        if threads is not None:
            _copy(threads, lambda stage, done, total: None)
    return _facts(folder)


def _copy_remote(
    database: Database, folder: Path, progress: Progress, copy_states: States | None
) -> None:
    """Write a catalogue that is on a server into a file; `copy_states` copies into its folder.

    A conversation that goes on meanwhile has another state by then, and in the copy its turns.
    """
    with ExitStack() as snapshots, explained(database.path):
        with database.write():
            reader = snapshots.enter_context(reading(database))
            reader.execute("SELECT 1")  # from here on it sees no later change
            for name in (KEY_FILE, HEAD_FILE):
                if (database.path.parent / name).exists():
                    shutil.copyfile(database.path.parent / name, folder / name)
        of_server("moving").write_file(
            reader, folder / CATALOGUE, progress, without=DERIVED, words=False
        )
        if copy_states is not None and (named := states_of(reader)):
            copy_states(folder, named)


def _facts(folder: Path) -> dict[str, object]:
    """Take out of a copy what is of its directory alone, check it, and return its facts."""
    with closing(connect(folder / CATALOGUE)) as copied:
        # It counts for itself, and has an index of its own.
        copied.execute("DELETE FROM meta WHERE key IN (?, ?, ?)", (COMMITS, INDEX, INDEX_ID))
        damage = [row[0] for row in copied.execute("PRAGMA quick_check(3)") if row[0] != "ok"]
        if damage:
            raise OperatorError(
                "the catalogue is damaged, so it cannot be backed up",
                value="; ".join(damage),
                hint="`carrel doctor` tells more; keep the backups there are",
            )
        return facts_of(copied)


@contextmanager
def _copying(source: Path, target: Path) -> Iterator[sqlite3.Connection | None]:
    """Open a file with its copy attached; None where there is no such file."""
    if not source.exists():
        yield None
        return
    with closing(connect(source, BUSY_S)) as connection:
        connection.execute(f"ATTACH DATABASE ? AS {OUT}", (str(target),))
        for pragma in ("journal_mode=OFF", "synchronous=OFF"):
            connection.execute(f"PRAGMA {OUT}.{pragma}")
        yield connection


def _copy(connection: sqlite3.Connection, progress: Progress) -> None:
    """Copy the tables with their rows, then indexes and triggers, and end the snapshot."""
    rows = connection.execute(
        "SELECT type, name, sql FROM main.sqlite_schema WHERE sql IS NOT NULL"
        " ORDER BY type = 'trigger', type = 'index', rowid"
    ).fetchall()
    wanted = [row for row in rows if not row[1].startswith((FULL_TEXT, "sqlite_"))]
    for done, (kind, name, sql) in enumerate(wanted):
        connection.execute(placed(kind, sql))
        if kind == "table" and name not in DERIVED:
            connection.execute(f'INSERT INTO {OUT}."{name}" SELECT * FROM main."{name}"')
        progress("copy", done + 1, len(wanted))
    connection.execute(f"PRAGMA {OUT}.user_version = {FORMAT}")
    connection.execute("COMMIT")


def placed(kind: str, sql: str) -> str:
    """Return the statement that made something, for the copy in place of the original."""
    words = "CREATE UNIQUE INDEX" if sql.startswith("CREATE UNIQUE") else f"CREATE {kind.upper()}"
    return f"{words} {OUT}.{sql.removeprefix(words).lstrip()}"


NEW = ".new"
MB = 1_000_000  # bytes
BACKING_UP = threading.Lock()


def make_backup(
    database: Database,
    target: Path,
    progress: Progress,
    *,
    key: bytes | None = None,
    force: bool = False,
    min_free_mb: int = 0,
    copy_states: States | None = None,
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
    busy = InUseError("one backup at a time is made", hint="wait for the other one")
    if not BACKING_UP.acquire(blocking=False):
        raise busy
    try:
        with database.coordination.lock("backup", wait=False) as taken:
            if not taken:
                raise busy
            return _made(database, work, target, key, progress, copy_states)
    finally:
        BACKING_UP.release()


def _made(
    database: Database,
    work: Path,
    target: Path,
    key: bytes | None,
    progress: Progress,
    copy_states: States | None,
) -> BackupManifest:
    try:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(mode=0o700)
        facts = snapshot(database, work, progress, copy_states)
        return _packed(work, target, facts, key, progress)
    finally:
        shutil.rmtree(work, ignore_errors=True)


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
            _write_parts(cast(IO[bytes], sealing or file), work, manifest, progress)
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


def _write_parts(file: IO[bytes], work: Path, manifest: BackupManifest, progress: Progress) -> None:
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


GB = 1_000_000_000  # bytes, as above
MARGIN = 50_000_000  # bytes of disk that stay free; chosen, not measured


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
            found.append(_write_part(content, folder / entry.name, entry))
    return found, text


def _write_part(content: IO[bytes], path: Path, entry: tarfile.TarInfo) -> BackupFile:
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
            with closing(connect(path)) as connection:
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
    with closing(connect(Path(":memory:"))) as connection:
        make_schema(connection)
        return _schema(connection)


def _damaged(path: Path, why: str) -> OperatorError:
    return OperatorError(
        "the backup is damaged or was not made by Carrel",
        value=f"{path.name}: {why}",
        hint="nothing was restored; take another backup",
    )
