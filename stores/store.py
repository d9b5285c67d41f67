"""One data directory, opened: the lock, the catalogue and the indexes derived from it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol

from core.faults import fault
from core.settings import Settings
from stores.backup.manifest import WORK
from stores.batches import Batches
from stores.books import Books
from stores.catalogue import Catalogue
from stores.checkup import Checkup
from stores.chroma import ChromaVectors
from stores.conversations import Conversations
from stores.database import Database, damaged
from stores.embeddings import ExactVectors, Vector
from stores.erasure.erase import Erasure
from stores.erasure.vectors import VectorErasure
from stores.files import Files
from stores.folder import CATALOGUE as CATALOGUE
from stores.folder import check_folder as check_folder
from stores.folder import data_folder
from stores.fulltext import FullText
from stores.ingesting import Ingesting
from stores.journal import Journal
from stores.left_out import LeftOut
from stores.lock import OwnerLock, locked
from stores.outbox import Outbox
from stores.records import Records
from stores.repeats import Repeats
from stores.runs import Runs
from stores.seal import Seal, close_seal, opened_seal
from stores.segments.hot import HotSearch
from stores.verify import Verifier
from stores.writer import Writer


class VectorIndex(Protocol):
    """Find the nearest chunks among visible documents."""

    def search(
        self, collection_id: int, vector: Vector, limit: int, visible: set[int], version: int
    ) -> list[tuple[str, float]]:
        """Return (chunk id, cosine) pairs, best first; `version` is the index version."""


class Store:
    """Own a data directory until closed."""

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

        With `check_later` the caller sees to `checkup.finish`, and is asked meanwhile.
        `lock` is one that is held already; it is given back with the store. `ingesting` is for work
        that changes many documents or makes indexes anew: one after the other.
        """
        self.lock = lock or locked(settings, create=create)
        folder = data_folder(settings)
        self.folder: Path = folder
        self.model_id = model_id
        self.ingesting = Ingesting()
        shutil.rmtree(folder / WORK, ignore_errors=True)  # of a backup that was ended
        try:
            self.seal = Seal(folder, most_mb=settings.check_seal_mb)
            self.sealed = opened_seal(self.seal, folder)
            self.database = Database(folder / CATALOGUE)
        except BaseException:
            self.lock.release()
            raise
        self.catalogue = Catalogue(self.database)
        self.writer = Writer(self.database)
        self.files = Files(self.database)
        self.journal = Journal(self.database)
        self.batches = Batches(self.database)
        self.left_out = LeftOut(self.database)
        self.repeats = Repeats(self.database)
        self.books = Books(self.database)
        self.runs = Runs(self.database)
        self.conversations = Conversations(self.database)
        self.fulltext = FullText(
            self.database, (settings.bm25_title, settings.bm25_keywords, settings.bm25_section)
        )
        self.records = Records(
            self.database,
            timeout_s=settings.sql_timeout_s,
            most_fields=settings.max_collection_fields,
        )
        self._scans: dict[str, ExactVectors] = {}
        self.chroma = ChromaVectors(folder / "chroma", model_id, batch=settings.vector_batch)
        self.hot = HotSearch(folder, self.database, self.fulltext, self.chroma, model_id, settings)
        self.outbox = Outbox(self.database, self.chroma, model_id, batch=settings.vector_batch)
        wait_s = settings.erase_wait_s
        chroma = folder / "chroma"
        vectors = VectorErasure(chroma, self.database, self.chroma, self.outbox, wait_s)
        self.erasure = Erasure(folder, self.database, self.hot, vectors, wait_s)
        self.verifier = Verifier(self.database, self.chroma, model_id, batch=settings.vector_batch)

        self.checkup = Checkup(self, settings, later=check_later)
        try:
            self.checkup.opened(self.sealed)
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

    def rebuild_vectors(self, progress: Callable[[int], None] | None = None) -> int:
        """Make the Chroma index anew from the catalogue; return the number of vectors."""
        with self.ingesting:
            fault("rebuild.before")
            self.chroma.drop()
            total = self.outbox.refill()
            fault("rebuild.after")
            self.outbox.drain(progress)
            return total

    def close(self) -> None:
        """Close the files and give the lock back."""
        left_out = self.checkup.left_out()
        self.hot.close()
        self.chroma.close()
        self.database.close()
        if left_out is not None:
            close_seal(self.seal, left_out)
        self.lock.release()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
