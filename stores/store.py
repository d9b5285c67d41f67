"""One data directory, opened: the lock, the catalogue and the indexes derived from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol

from core.errors import OperatorError
from core.faults import fault
from core.settings import Settings
from stores.batches import Batches
from stores.books import Books
from stores.catalogue import Catalogue
from stores.chroma import ChromaVectors
from stores.conversations import Conversations
from stores.database import Database
from stores.embeddings import ExactVectors, Vector
from stores.erasure import Erasure
from stores.files import Files
from stores.fulltext import FullText
from stores.journal import Journal
from stores.left_out import LeftOut
from stores.lock import OwnerLock
from stores.outbox import Outbox
from stores.records import Records
from stores.repeats import Repeats
from stores.runs import Runs
from stores.segments.hot import HotSearch
from stores.verify import Verifier
from stores.writer import Writer

CATALOGUE = "catalogue.sqlite3"


class VectorIndex(Protocol):
    """Find the nearest chunks among visible documents."""

    def search(
        self, collection_id: int, vector: Vector, limit: int, visible: set[int], version: int
    ) -> list[tuple[str, float]]:
        """Return (chunk id, cosine) pairs, best first; `version` is the index version."""


class Store:
    """Own a data directory until closed."""

    def __init__(self, settings: Settings, model_id: str, *, create: bool = False) -> None:
        """Lock and open the directory; without `create` it must exist already."""
        folder = settings.data.expanduser().absolute()  # child processes work elsewhere
        check_folder(folder, create=create)
        self.folder: Path = folder
        self.model_id = model_id
        self.lock = OwnerLock(folder, wait_s=settings.lock_wait_s)
        self.lock.acquire()
        try:
            self.database = Database(folder / CATALOGUE)
        except BaseException:
            self.lock.release()
            raise
        self.catalogue = Catalogue(self.database)
        self.writer = Writer(self.database)
        self.files = Files(self.database)
        self.left_out = LeftOut(self.database)
        self.repeats = Repeats(self.database)
        self.books = Books(self.database)
        self.journal = Journal(self.database)
        self.batches = Batches(self.database)
        self.runs = Runs(self.database)
        self.conversations = Conversations(self.database)
        self.fulltext = FullText(
            self.database, (settings.bm25_title, settings.bm25_keywords, settings.bm25_section)
        )
        self.records = Records(self.database, timeout_s=settings.sql_timeout_s)
        self._scans: dict[str, ExactVectors] = {}
        self.chroma = ChromaVectors(folder / "chroma", model_id, batch=settings.vector_batch)
        self.hot = HotSearch(folder, self.database, self.fulltext, self.chroma, model_id, settings)
        self.outbox = Outbox(self.database, self.chroma, model_id, batch=settings.vector_batch)
        self.verifier = Verifier(self.database, self.chroma, model_id, batch=settings.vector_batch)
        self.erasure = Erasure(self.database, self.runs, self.outbox)

    def scan(self, model_id: str) -> ExactVectors:
        """Return the exact scan over the vectors of another model, such as a second embedder."""
        if model_id not in self._scans:
            self._scans[model_id] = ExactVectors(self.database, model_id)
        return self._scans[model_id]

    def rebuild_vectors(self, progress: Callable[[int], None] | None = None) -> int:
        """Make the Chroma index anew from the catalogue; return the number of vectors."""
        fault("rebuild.before")
        self.chroma.drop()
        total = self.outbox.refill()
        fault("rebuild.after")
        self.outbox.drain(progress)
        return total

    def close(self) -> None:
        """Close the files and give the lock back."""
        self.hot.close()
        self.chroma.close()
        self.database.close()
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


def check_folder(folder: Path, *, create: bool) -> None:
    """Raise OperatorError unless the folder holds data, or may be created."""
    try:
        if create:
            folder.mkdir(parents=True, exist_ok=True)
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
