"""One data directory, opened: the lock, the catalogue and the indexes derived from it."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from types import TracebackType

from core.settings import Settings
from stores.backup.manifest import WORK
from stores.folder import CATALOGUE, data_folder
from stores.index.registry import open_index
from stores.ingesting import Ingesting
from stores.integrity.file_manifest import (
    SEAL_MB,
    FileManifest,
    open_file_manifest,
    write_file_manifest,
)
from stores.integrity.verify import Verifier
from stores.lock import OwnerLock, locked
from stores.maintenance import LocalMaintenance
from stores.sqlite.database import Database, damaged
from stores.sqlite.embeddings import ExactVectors
from stores.sqlite.implementation import SqliteRecord


class StoreParts:
    """Hold the parts of an open data directory, as the modules of this package need them."""

    def __init__(
        self,
        settings: Settings,
        model_id: str,
        *,
        create: bool = False,
        lock: OwnerLock | None = None,
        check_later: bool = False,
    ) -> None:
        """Open the directory and own it; without `create` it must exist already.

        With `check_later` the caller sees to `finish_check`, and is asked meanwhile.
        `lock` is one that is held already; it is given back with the store. `ingesting` is for work
        that changes many documents or rebuilds indexes: one after the other.
        """
        self.lock = lock or locked(settings, create=create)
        folder = data_folder(settings)
        self.folder: Path = folder
        self.model_id = model_id
        self.ingesting = Ingesting()
        shutil.rmtree(folder / WORK, ignore_errors=True)  # of a backup that was ended
        try:
            self.seal = FileManifest(folder, most_mb=SEAL_MB)
            self.sealed = open_file_manifest(self.seal, folder)
            self.database = Database(folder / CATALOGUE)
        except BaseException:
            self.lock.release()
            raise
        self.record = SqliteRecord(self.database, settings)
        self.catalogue, self.fulltext = self.record.catalogue, self.record.fulltext
        self._scans: dict[str, ExactVectors] = {}
        try:
            self.search = open_index(folder, self.database, self.fulltext, model_id, settings)
        except BaseException:
            self.database.close()
            self.lock.release()
            raise
        self.verifier = Verifier(self.database, model_id, batch=settings.ingest.vector_batch)
        self.maintenance = LocalMaintenance(self, settings, later=check_later)
        try:
            self.maintenance.opened(self.sealed)
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.DatabaseError):
                raise damaged(self.database.path, error) from None
            raise

    def scan(self, model_id: str) -> ExactVectors:
        """Return the exact scan over the vectors of another model, such as a second embedder."""
        if model_id not in self._scans:
            self._scans[model_id] = ExactVectors(self.database, model_id)
        return self._scans[model_id]

    def close(self) -> None:
        """Close the files and give the lock back."""
        left_out = self.maintenance.left_out()
        self.search.close()
        self.database.close()
        if left_out is not None:
            write_file_manifest(self.seal, left_out)
        self.lock.release()

    def __enter__(self) -> StoreParts:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
