"""The keys and the audit log of a data directory, also while a server owns it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from core.errors import DataLockedError
from core.settings import Settings
from stores.folder import CATALOGUE, check_folder, make_private, private_files
from stores.integrity.file_manifest import (
    SEAL_MB,
    FileManifest,
    open_file_manifest,
    write_file_manifest,
)
from stores.lock import OwnerLock
from stores.sqlite.database import Database, explained
from stores.sqlite.implementation import SqliteRecord
from stores.sqlite.schema import FORMAT, format_of


@contextmanager
def opened_catalogue(
    folder: Path, *, create: bool = False, insecure: bool = False
) -> Iterator[SqliteRecord]:
    """Open the catalogue to change only what several processes may change.

    SQLite lets two processes write one table; what only the owner may touch is left alone. What
    others can read is closed as by the owner, with `insecure` not (`make_private`).
    """
    folder = folder.expanduser().absolute()
    check_folder(folder, create=create)
    catalogue = folder / CATALOGUE
    lock = OwnerLock(folder, wait_s=0)
    seal = FileManifest(folder, most_mb=SEAL_MB)
    report = None
    try:
        lock.acquire()
    except DataLockedError:
        if format_of(catalogue) != FORMAT:  # its owner has not made it yet
            raise
    with private_files():
        try:
            if lock.held:
                make_private(folder, insecure=insecure)
                report = open_file_manifest(seal, folder)
            with explained(catalogue), closing(Database(catalogue)) as database:
                yield SqliteRecord(database, Settings(data=folder))
        finally:
            if report is not None and report.state in ("equal", "new"):
                write_file_manifest(seal, report.left_out)
            lock.release()
