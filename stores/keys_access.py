"""The keys and the audit log of a data directory, also while a server owns it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from core.errors import DataLockedError
from core.settings import Settings
from stores.database import Database, explained
from stores.folder import CATALOGUE, check_folder, make_private, private_files
from stores.lock import OwnerLock
from stores.migrations import MIGRATIONS
from stores.seal import Seal, close_seal, opened_seal


@contextmanager
def opened_catalogue(
    folder: Path, *, create: bool = False, insecure: bool = False
) -> Iterator[Database]:
    """Open the catalogue to change only what several processes may change.

    SQLite lets two processes write one table; what only the owner may touch is left alone. An owner
    of another version is not written beside: its schema would change while it runs. What others
    can read is closed as by the owner, with `insecure` not (`make_private`).
    """
    folder = folder.expanduser().absolute()
    check_folder(folder, create=create)
    catalogue = folder / CATALOGUE
    lock = OwnerLock(folder, wait_s=0)
    seal = Seal(folder, most_mb=Settings.model_fields["check_seal_mb"].default)
    report = None
    try:
        lock.acquire()
    except DataLockedError:
        if not _is_current(catalogue):
            raise
    with private_files():
        try:
            if lock.held:
                make_private(folder, insecure=insecure)
                report = opened_seal(seal, folder)
            with explained(catalogue), closing(Database(catalogue)) as database:
                yield database
        finally:
            if report is not None and report.state in ("equal", "new"):
                close_seal(seal, report.left_out)
            lock.release()


def _is_current(catalogue: Path) -> bool:
    """Tell whether the owner's schema is exactly this program's."""
    try:
        with closing(sqlite3.connect(catalogue)) as connection:
            rows = connection.execute("SELECT name FROM migrations").fetchall()
    except sqlite3.Error:
        return False
    return {row[0] for row in rows} == {step.__name__ for step in MIGRATIONS}
