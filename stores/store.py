"""One data directory, opened: its lock, catalogue and index, and what keeps it sound."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.settings import Settings
from stores.backup.archive import States, make_backup
from stores.backup.format import WORK
from stores.erasure.documents import Gone, documents_in, documents_of, named_document
from stores.erasure.erase import Erasure
from stores.folder import CATALOGUE, data_folder
from stores.index.port import SearchIndex
from stores.index.registry import open_index
from stores.integrity import health
from stores.integrity.checkup import Checkup
from stores.integrity.file_manifest import FileManifest, FileReport
from stores.integrity.rows import accept_loss, incomplete_documents
from stores.lock import Ingesting, OwnerLock, locked
from stores.ports import Accounts, Catalogue, Intake, Maintenance, Notes, RunLog, Trees
from stores.segments.rows import snapshot
from stores.sqlite.catalogue import Collection
from stores.sqlite.database import damaged, explained
from stores.sqlite.embeddings import ExactVectors
from stores.sqlite.fulltext import write_again
from stores.sqlite.implementation import SqliteRecord, open_database
from stores.sqlite.quality import QualityCounts

if TYPE_CHECKING:
    from stores.backup.format import BackupManifest


class LocalMaintenance(Checkup, Erasure):
    """Maintain one open data directory."""

    def __init__(self, parts: StoreParts, settings: Settings, *, later: bool = False) -> None:
        Checkup.__init__(self, parts, later=later)
        wait_s = settings.storage.erase_wait_s
        Erasure.__init__(self, parts.folder, parts.database, parts.search, wait_s)
        self.condition = parts.database.condition
        self.lock = parts.lock
        self.coordination = parts.database.coordination

    def explained(self) -> AbstractContextManager[None]:
        return explained(self._database.path)

    def check_writable(self) -> None:
        self._database.check_writable()

    def turn(self, work: str, waiting: Callable[[str], None]) -> AbstractContextManager[None]:
        return self._parts.ingesting.turn(work, waiting)

    def changing(self) -> AbstractContextManager[object]:
        return self._parts.ingesting

    def named_document(self, collection: Collection, name: str) -> Gone:
        return named_document(self._database.read(), collection, name)

    def documents_in(self, collection: Collection, files: Sequence[str]) -> list[Gone]:
        return documents_in(self._database.read(), collection, files)

    def documents_of(self, collection: Collection, patterns: Sequence[str]) -> list[Gone]:
        return documents_of(self._database.read(), collection, patterns)

    def examine(self) -> dict[str, Any]:
        return health.examine(self._parts)

    def accept_loss(self, settings: Settings) -> list[str]:
        return accept_loss(self._parts, settings)

    def back_up(
        self,
        target: Path,
        progress: Callable[[str, int, int], None],
        *,
        key: bytes | None = None,
        force: bool = False,
        min_free_mb: int = 0,
        copy_states: States | None = None,
    ) -> BackupManifest:
        return make_backup(
            self._database,
            target,
            progress,
            key=key,
            force=force,
            min_free_mb=min_free_mb,
            copy_states=copy_states,
        )

    @contextmanager
    def quality_counts(self, collection: Collection, examples: int) -> Iterator[QualityCounts]:
        with snapshot(self._database):
            yield QualityCounts(self._database, collection, examples)

    def missing(self, collection_id: int, documents: Sequence[str]) -> dict[str, str]:
        return incomplete_documents(self._database, self._parts.model_id, collection_id, documents)

    def index_words_again(self, collection_id: int, documents: Sequence[str]) -> None:
        with self._database.write() as connection:
            for one in documents:
                write_again(connection, collection_id, "d.document_id = ?", one)


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
        shared = self.lock.shared
        folder = data_folder(settings)
        self.folder: Path = folder
        self.model_id = model_id
        self.ingesting = Ingesting()
        try:
            self.seal = FileManifest(folder)
            # Of a directory that others change meanwhile a seal says nothing.
            self.sealed = FileReport("equal") if shared else self.seal.open()
            if not shared:
                shutil.rmtree(folder / WORK, ignore_errors=True)  # of a backup that was ended
            self.database = open_database(folder / CATALOGUE, settings.catalogue, shared=shared)
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
        left_out = None if self.lock.shared else self.maintenance.left_out()
        self.search.close()
        self.database.close()
        if left_out is not None:
            self.seal.write(left_out)
        self.lock.release()


class Store:
    """Own a data directory until closed; each part of it stands behind a port."""

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

        With `check_later` the caller sees to `maintenance.finish_check`. `lock` is one that is held
        already; it is given back with the store.
        """
        self._parts = StoreParts(
            settings, model_id, create=create, lock=lock, check_later=check_later
        )
        self.catalogue: Catalogue = self._parts.record.catalogue
        self.intake: Intake = self._parts.record.intake
        self.runs: RunLog = self._parts.record.runs
        self.accounts: Accounts = self._parts.record.accounts
        self.trees: Trees = self._parts.record.trees
        self.notes: Notes = self._parts.record.notes
        self.maintenance: Maintenance = self._parts.maintenance
        self.search: SearchIndex = self._parts.search
        self.scan = self._parts.scan

    @property
    def folder(self) -> Path:
        """Return the data directory."""
        return self._parts.folder

    @property
    def address(self) -> str:
        """Return where the catalogue is: "sqlite", or the address of its server."""
        return self._parts.database.url

    @property
    def index_server(self) -> str:
        """Return the address of a server that has the vectors, "" for none."""
        return self.search.server

    def warnings(self) -> list[str]:
        """Return what callers should know of damage, and of an index that does not answer."""
        return [*self._parts.record.warnings(), *self.search.warnings()]

    def unfinished_erasure(self) -> str:
        """Say what an erasure has left to do, "" for nothing."""
        return self._parts.record.unfinished_erasure()

    def index(self, settings: Settings) -> str:
        """Return the search index that the directory has; raises where settings say another."""
        return self._parts.record.index(settings)

    def close(self) -> None:
        """Close the files and give the lock back."""
        self._parts.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def parts(store: Store) -> StoreParts:
    """Return the parts behind an open store, for tests and measurements of this package."""
    return store._parts
