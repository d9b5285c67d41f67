"""The record of everything in one SQLite file: what answers behind the ports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import ModuleType

from core.distribution import load_extra
from core.errors import DataLockedError
from core.settings import Settings
from stores.accounts.audit import AuditLog, staying_rows
from stores.accounts.keys import Keys, Spending
from stores.erasure.erase import pending
from stores.folder import (
    CATALOGUE,
    SQLITE,
    check_folder,
    data_folder,
    make_private,
    private_files,
)
from stores.index.place import checked_place, recorded_place
from stores.integrity.file_manifest import FileManifest
from stores.lock import OwnerLock, is_shared
from stores.runlog.conversations import Conversations
from stores.runlog.jobs import JobRows
from stores.runlog.notes import KeptNotes
from stores.runlog.runs import Ratings, Runs
from stores.runlog.sharing import Shares
from stores.runlog.sources import SourceRows
from stores.sqlite.access_lists import AccessLists
from stores.sqlite.catalogue import VisiblePassages
from stores.sqlite.database import Database, explained
from stores.sqlite.files import Files
from stores.sqlite.fulltext import FullText, rebuild_fulltext
from stores.sqlite.listing import Listing
from stores.sqlite.quality import Arrangement
from stores.sqlite.records import Records
from stores.sqlite.schema import FORMAT, format_of
from stores.sqlite.tree import SqliteTrees
from stores.sqlite.writer import Writer


class SqliteCatalogue(Listing, Records):
    """Answer what exists and what a caller may see."""

    def __init__(self, database: Database, fulltext: FullText, settings: Settings) -> None:
        """Read from `database`; `fulltext` knows how rare words are."""
        Listing.__init__(self, database)
        Records.__init__(
            self,
            database,
            timeout_s=settings.retrieval.sql_timeout_s,
            most_fields=settings.ingest.max_collection_fields,
        )
        self._fulltext = fulltext

    def inverse_frequencies(self, collection_id: int, wanted: Sequence[str]) -> dict[str, float]:
        return self._fulltext.inverse_frequencies(collection_id, wanted)


class SqliteIntake(Writer, Files, AccessLists, Arrangement):
    """Keep what ingest reads and writes."""

    def rebuild_words(self, progress: Callable[[str, int, int], None]) -> int:
        return sum(
            rebuild_fulltext(self._database, one.id, partial(progress, f"text {one.name}"))
            for one in VisiblePassages(self._database).collections()
        )


class SqliteRunLog(Runs, Conversations, Ratings):
    """Keep runs, conversations, and what readers thought of them."""


class SqliteAccounts:
    """Keep who may ask and what they did: keys, tokens spent, jobs, and the audit log."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.keys = Keys(database)
        self.spending = Spending(database)

    def jobs(self, kept: int) -> JobRows:
        return JobRows(self._database, kept=kept)

    def sources(self) -> SourceRows:
        return SourceRows(self._database)

    def shares(self) -> Shares:
        return Shares(self._database)

    def audit(self, settings: Settings) -> AuditLog:
        return AuditLog(self._database, settings)

    def staying_rows(self, tenant: str | None) -> tuple[int, int]:
        return staying_rows(self._database.read(), tenant)


class SqliteRecord:
    """Everything that one catalogue file keeps, by topic."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database = database
        self.folder = database.path.parent
        self.fulltext = FullText(database)
        self.catalogue = SqliteCatalogue(database, self.fulltext, settings)
        self.intake = SqliteIntake(database)
        self.runs = SqliteRunLog(database)
        self.accounts = SqliteAccounts(database)
        self.trees = SqliteTrees(database)
        self.notes = KeptNotes(database)

    def warnings(self) -> list[str]:
        return self.database.condition.warnings()

    def unfinished_erasure(self) -> str:
        left = pending(self.database)
        return left.problem if left else ""

    def index(self, settings: Settings) -> str:
        kept = recorded_place(self.database)
        wanted = checked_place(kept, settings)
        return wanted.record if kept else ""

    @property
    def lost(self) -> str:
        """Say which rows are missing, "" for none."""
        return self.database.condition.lost


def open_database(
    path: Path, catalogue: str, *, beside: bool = False, shared: bool = False
) -> Database:
    """Open the catalogue where the setting says.

    `beside` another process that owns it, or `shared` with others that use all of it.
    """
    if catalogue == SQLITE:
        return Database(path)
    opened = of_server("database").PostgresDatabase
    made: Database = opened(path, catalogue, beside=beside, shared=shared)
    return made


def of_server(module: str) -> ModuleType:
    """Import what speaks to PostgreSQL: nothing of it is loaded where it is not chosen."""
    return load_extra("postgres", "a catalogue in PostgreSQL", f"stores.postgres.{module}")


@contextmanager
def opened_record(
    settings: Settings, *, owned: bool = True, alone: bool = False
) -> Iterator[SqliteRecord]:
    """Open the record without the indexes made from it; seal what changes in an owned directory.

    With `alone` no other process uses it, though it be one that several share.
    """
    path = data_folder(settings) / CATALOGUE
    shared = owned and not alone and is_shared(settings)
    seal = FileManifest(path.parent).sealed_again() if owned and not shared else nullcontext()
    made = open_database(path, settings.catalogue, beside=not owned, shared=shared)
    with seal, explained(path), closing(made) as database:
        yield SqliteRecord(database, settings)


@contextmanager
def opened_catalogue(
    folder: Path, *, create: bool = False, insecure: bool = False, catalogue: str = SQLITE
) -> Iterator[SqliteRecord]:
    """Open the catalogue to change only what several processes may change.

    SQLite lets two processes write one table; what only the owner may touch is left alone. What
    others can read is closed as by the owner, with `insecure` not (`make_private`).
    """
    folder = folder.expanduser().absolute()
    check_folder(folder, create=create, catalogue=catalogue)
    shared = is_shared(Settings(data=folder, catalogue=catalogue))
    lock = OwnerLock(folder, wait_s=0, shared=shared)
    try:
        lock.acquire()
    except DataLockedError:
        if (
            catalogue == SQLITE and format_of(folder / CATALOGUE) != FORMAT
        ):  # its owner has not made it yet
            raise
    with private_files():
        try:
            if lock.held:
                make_private(folder, insecure=insecure)
            with opened_record(
                Settings(data=folder, catalogue=catalogue), owned=lock.held
            ) as record:
                yield record
        finally:
            lock.release()
