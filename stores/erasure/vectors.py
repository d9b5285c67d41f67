"""Write the vector index of collections anew: vectors can be turned back into words."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from stores.compaction import compact
from stores.database import Database
from stores.erasure.graph_files import clear_unused, memory_cleared

if TYPE_CHECKING:
    from stores.chroma import ChromaVectors
    from stores.outbox import Outbox

NAME = re.compile(r"collection-([0-9]+)-[0-9a-f]+")
SQLITE = "chroma.sqlite3"
BUSY_S = 30.0


class VectorErasure:
    """Take deleted vectors out of Chroma's files."""

    def __init__(
        self, folder: Path, database: Database, chroma: ChromaVectors, outbox: Outbox, wait_s: float
    ) -> None:
        """Use the index in `folder`; `wait_s` is how long its readers are waited for."""
        self._folder = folder
        self._database = database
        self._chroma = chroma
        self._outbox = outbox
        self._wait_s = wait_s

    def erase(self, changed: Collection[int], step: Callable[[], None]) -> None:
        """Write the index of these collections anew from the stored vectors, and drop orphans.

        An index that cannot be opened is dropped as a whole and written anew.
        """
        self._outbox.refill(changed)
        step()
        if self._folder.exists():
            with memory_cleared():
                self._drop_all_of(changed)
        self._outbox.drain(lambda count: step())
        if self._folder.exists():
            self._clear_files()

    def _drop_all_of(self, changed: Collection[int]) -> None:
        try:
            self._drop_collections(changed)
        except Exception:  # Chroma raises what it likes, on a full disk too
            self._chroma.drop()
            self._outbox.refill()

    def _drop_collections(self, changed: Collection[int]) -> None:
        rows = self._database.read().execute("SELECT id FROM collections")
        kept = {row[0] for row in rows} - set(changed)
        client = self._chroma.client()
        for collection in client.list_collections():
            match = NAME.fullmatch(collection.name)
            if match is None or int(match[1]) not in kept:
                client.delete_collection(collection.name)

    def _clear_files(self) -> None:
        """Write Chroma's own catalogue anew, and remove folders of which it knows nothing."""
        path = self._folder / SQLITE
        with closing(sqlite3.connect(path, isolation_level=None, timeout=BUSY_S)) as connection:
            rows = connection.execute("SELECT id FROM segments WHERE scope = 'VECTOR'")
            known = {row[0] for row in rows}
            compact(connection, path, self._wait_s)
        for folder in self._folder.iterdir():
            if folder.is_dir() and folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)
            elif folder.is_dir():
                clear_unused(folder)
