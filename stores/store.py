"""One data directory, opened: what the rooms above speak to."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from core.settings import Settings
from stores.index.port import SearchIndex
from stores.lock import OwnerLock
from stores.parts import StoreParts
from stores.ports import Accounts, Catalogue, Intake, Maintenance, RunLog


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
        self.maintenance: Maintenance = self._parts.maintenance
        self.search: SearchIndex = self._parts.search
        self.scan = self._parts.scan

    @property
    def folder(self) -> Path:
        """Return the data directory."""
        return self._parts.folder

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def parts(store: Store) -> StoreParts:
    """Return the parts behind an open store, for tests and measurements of this package."""
    return store._parts
